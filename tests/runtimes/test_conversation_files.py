"""Files of a conversation, taken from one machine and laid where the CLI of another looks."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError
from agent_farm.farm.conversation_home import require_within_reach
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.conversation_files import find_files, lay_files
from tests.builders.test_registry import a_record

ID = "0a1b2c3d-0000-4000-8000-000000000000"
HERE, THERE = Path("/home/me/farm.one/.builders/x"), Path("/srv/fleet/farm/.builders/x")
PLACES = {
    "claude-code": (
        f".claude/projects/-home-me-farm-one--builders-x/{ID}.jsonl",
        f".claude/projects/-srv-fleet-farm--builders-x/{ID}.jsonl",
    ),
    "codex": (
        f".codex/sessions/2026/11/19/rollout-2026-11-19T10-00-00-{ID}.jsonl",
        f".codex/sessions/2026/11/19/rollout-2026-11-19T10-00-00-{ID}.jsonl",
    ),
}


@pytest.mark.parametrize("runtime", PLACES)
def test_it_is_found_and_laid_for_another_directory(runtime: str, tmp_path: Path) -> None:
    cli, (before, after) = get_adapter(runtime).cli, PLACES[runtime]
    one, other = tmp_path / "one", tmp_path / "other"
    file = one / before
    file.parent.mkdir(parents=True)
    file.write_text("said\n")
    file.with_name(f"another-{ID[:8]}.jsonl").write_text("another conversation\n")
    (file.parent / "link.jsonl").symlink_to("/etc/passwd")
    found = dict(find_files(cli, ID, private=one / "run", env={"HOME": str(one)}, cwd=HERE))
    assert list(found.values()) == [file]
    contents = {name: path.read_bytes() for name, path in found.items()}
    lay_files(cli, ID, contents, private=other / "run", env={"HOME": str(other)}, cwd=THERE)
    assert [path for path in other.rglob("*") if path.is_file()] == [other / after]


def test_with_a_key_it_is_in_the_builders_own_home(tmp_path: Path) -> None:
    cli = get_adapter("claude-code").cli
    env = {"HOME": str(tmp_path / "me"), "ANTHROPIC_API_KEY": "x"}
    lay_files(
        cli, ID, {f"projects/=cwd=/{ID}.jsonl": b"said\n"}, private=tmp_path / "me/run", env=env, cwd=THERE
    )
    (file,) = (path for path in (tmp_path / "me").rglob("*") if path.is_file())
    assert file == tmp_path / f"me/run/claude/projects/-srv-fleet-farm--builders-x/{ID}.jsonl"


@pytest.mark.parametrize("runtime", PLACES)
def test_a_start_in_the_other_home_is_refused(runtime: str, tmp_path: Path) -> None:
    """A key that was set at the spawn and is not now, the other way round, and `unlock`."""
    cli, me, run = get_adapter(runtime).cli, tmp_path / "me", tmp_path / "run"
    private = run / cli.binary / Path(PLACES[runtime][0]).relative_to(cli.own_home)
    own, key = me / PLACES[runtime][0], {cli.keys[0]: "x"}
    record = a_record(runtime=runtime)

    def refused(file: Path, env: dict[str, str], *unlocked: str) -> str:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text("said\n")
        start = Start(
            "pane", {"HOME": str(me), **env}, cwd=HERE, home=run, place=run, top=HERE,
            conversation_id=ID, resume=True, unlocked=unlocked,
        )  # fmt: skip
        try:
            require_within_reach(record, cli, start)
        except AgentFarmError as error:
            return str(error.hint)
        finally:
            file.unlink()
        return ""

    assert (refused(private, key), refused(own, {})) == ("", "")
    assert refused(private, {}) == f"export {cli.keys[0]}=…"
    assert refused(own, key) == f"unset {cli.keys[0]}"
    assert refused(private, key, "hooks") == f"af config unset runtimes.{runtime}.unlock"


@pytest.mark.parametrize(
    "name",
    [
        "settings.json",
        "projects/=cwd=/../../settings.json",
        f"projects/../{ID}.jsonl",
        f"/projects/=cwd=/{ID}.jsonl",
        "projects/=cwd=/another.jsonl",
        f"projects/=cwd=/sub/{ID}.jsonl",
        "",
    ],
)
def test_nothing_else_is_laid(name: str, tmp_path: Path) -> None:
    cli = get_adapter("claude-code").cli
    (tmp_path / "me/.claude").mkdir(parents=True)
    lay_files(
        cli, ID, {name: b"x"}, private=tmp_path / "me/run", env={"HOME": str(tmp_path / "me")}, cwd=THERE
    )
    assert [path for path in (tmp_path / "me").rglob("*") if path.is_file()] == []


def test_a_link_on_the_way_leads_nowhere(tmp_path: Path) -> None:
    cli = get_adapter("claude-code").cli
    outside = tmp_path / "outside"
    outside.mkdir()
    (tmp_path / "me/.claude").mkdir(parents=True)
    (tmp_path / "me/.claude/projects").symlink_to(outside)
    name = f"projects/=cwd=/{ID}.jsonl"
    lay_files(
        cli, ID, {name: b"x"}, private=tmp_path / "me/run", env={"HOME": str(tmp_path / "me")}, cwd=THERE
    )
    assert [path for path in outside.rglob("*") if path.is_file()] == []


def test_of_another_conversation_nothing_is_laid(tmp_path: Path) -> None:
    """Codex files all conversations of a day in one place."""
    cli, other = get_adapter("codex").cli, ID.replace("0a1b", "ffff")
    name = f"sessions/2026/11/19/rollout-2026-11-19T10-00-00-{other}.jsonl"
    file = tmp_path / ".codex" / name
    file.parent.mkdir(parents=True)
    file.write_text("what the user said\n")
    for id in (ID, "*", ""):
        lay_files(cli, id, {name: b"x"}, private=tmp_path / "run", env={"HOME": str(tmp_path)}, cwd=THERE)
    assert file.read_text() == "what the user said\n"


@pytest.mark.parametrize(
    ("before", "kept"),
    [("said\n", []), ("said\nsomething else\n", ["said\nsomething else\n"]), ("s", []), ("x", ["x"])],
)
def test_what_went_on_otherwise_stays(before: str, kept: list[str], tmp_path: Path) -> None:
    cli = get_adapter("demo").cli
    file = tmp_path / f"{cli.binary}/{ID}.json"
    file.parent.mkdir()
    file.write_text(before)
    lay_files(cli, ID, {f"{ID}.json": b"said\n"}, private=tmp_path, env={"HOME": str(tmp_path)}, cwd=THERE)
    assert file.read_text() == "said\n"
    assert [path.read_text() for path in file.parent.iterdir() if path != file] == kept
