from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.runtimes import ADAPTERS, get_adapter
from tests.conftest import Af


def test_runtimes_are_listed_one_a_line(af: Af) -> None:
    lines = af("runtimes").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(ADAPTERS)
    assert lines[-1].endswith("usable")
    document = json.loads(af("runtimes", "--json").stdout)
    assert document["version"] == 1
    assert document["runtimes"][-1] == {
        "name": "demo",
        "title": "Demo agent",
        "version": None,
        "problem": None,
        "usable": True,
        "note": None,
    }


def test_a_check_says_what_it_saw(af: Af) -> None:
    done = af("runtimes", "check", "demo")
    assert done.returncode == 0
    assert "ok  called the tool" in done.stdout
    assert "ok  sent the token and the session id" in done.stdout
    assert "ok  resumed the conversation" in done.stdout


def test_a_check_of_what_cannot_run_fails(af: Af, repo: Path) -> None:
    done = af("runtimes", "check", "codex", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1
    assert "npm install" in done.stdout
    unknown = af("runtimes", "check", "demoo")
    assert unknown.returncode == 2
    assert "hint: af runtimes check demo" in unknown.stderr
    nothing_like_it = af("runtimes", "check", "nope").stderr
    assert nothing_like_it.splitlines()[-1] == "hint: af runtimes"


def broken(place: Path, name: str, script: str) -> dict[str, str]:
    place.mkdir(exist_ok=True)
    (place / name).write_text(script)
    (place / name).chmod(0o755)
    return {"PATH": f"{place}:/usr/bin:/bin", "GEMINI_API_KEY": "key", "CODEX_API_KEY": "key"}


def test_a_check_tells_nothing_of_a_cli_that_never_ran(af: Af, tmp_path: Path) -> None:
    env = broken(tmp_path / "bin", "gemini", "#!/no/such/interpreter\n")
    done = af("runtimes", "check", "gemini", env=env)
    assert done.returncode == 1
    assert "no  ran" in done.stdout
    assert "no  reached its one MCP server" in done.stdout
    assert "no  sent the token" in done.stdout


def test_a_cli_without_a_version_is_not_usable(af: Af, tmp_path: Path) -> None:
    env = broken(tmp_path / "bin", "codex", "#!/bin/sh\necho 'cannot open shared object' >&2; exit 1\n")
    listed = {one["name"]: one for one in json.loads(af("runtimes", "--json", env=env).stdout)["runtimes"]}
    assert listed["codex"]["usable"] is False
    assert "--version fails: cannot open shared object" in listed["codex"]["problem"]


def installed(root: Path, package: str, name: str, version: str) -> dict[str, str]:
    """As npm does it: the program on PATH is a link into its package."""
    env = broken(root / "bin", name, f"#!/bin/sh\necho '{version}'\n")
    place = root / "node_modules" / package
    (place / "bin").mkdir(parents=True)
    (place / "package.json").write_text(json.dumps({"name": package, "version": version}))
    (root / "bin" / name).rename(place / "bin" / name)
    (root / "bin" / name).symlink_to(place / "bin" / name)
    return {**env, "ANTHROPIC_API_KEY": "key", "OPENCODE_API_KEY": "key"}


CLAUDE, OPENCODE = "@anthropic-ai/claude-code", "opencode-ai"


@pytest.mark.parametrize(
    ("package", "name", "runtime", "version", "why", "hint"),
    [
        (CLAUDE, "claude", "claude-code", "2.1.197", "2.1.197 is too old", f"npm install -g {CLAUDE}@latest"),
        (OPENCODE, "opencode", "opencode", "2.0.1", "2.0.1 is too new", f"npm install -g {OPENCODE}@1"),
    ],
)
def test_a_version_that_cannot_be_driven_is_told_before_anything_starts(
    af: Af,
    tmp_path: Path,
    repo: Path,
    package: str,
    name: str,
    runtime: str,
    version: str,
    why: str,
    hint: str,
) -> None:
    env = installed(tmp_path, package, name, version)
    done = af("spawn", "Fix it", "--runtime", runtime, env=env)
    assert done.returncode == 1
    assert f"{name} {why}" in done.stderr
    assert hint in done.stderr
    assert why in af("runtimes", env=env).stdout


def test_another_major_version_than_the_tried_one_is_told_and_used(
    af: Af, tmp_path: Path, repo: Path
) -> None:
    env = installed(tmp_path, "@openai/codex", "codex", "1.2.0")
    note = f"codex 1.2.0 has a different major version from {get_adapter('codex').cli.tried}, which was tried"
    assert f"usable: {note}" in af("runtimes", env=env).stdout
    planned = af("spawn", "Fix it", "--runtime", "codex", "--dry-run", env=env)
    assert planned.returncode == 0
    assert note in planned.stderr


def test_the_shipped_adapters_are_found_and_run(af: Af) -> None:
    path = af("adapter", "path", "codex-cli").stdout.strip()
    assert Path(path).is_file()
    done = af("adapter", "codex-cli", "check_status", "nobody")
    assert done.returncode == 3
    assert "no session nobody" in done.stderr
    wrong = af("adapter", "codex", "spawn")
    assert wrong.returncode == 2
    assert "hint: af adapter path codex-cli" in wrong.stderr


def test_a_spawned_builder_of_a_declared_runtime(af: Af, repo: Path) -> None:
    lego = (Path(__file__).with_name("lego.py")).read_text()
    (repo / "lego.py").write_text(lego)
    (repo / "lego.py").chmod(0o755)
    (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": {"lego": {"adapter": "lego.py"}}}))
    (repo / "agent-farm.toml").write_text('[env]\npass = ["LEGO_HOME"]\n')
    env = {"LEGO_HOME": str(repo.parent / "lego-sessions")}
    done = af("spawn", "Fix auth", "--runtime", "lego", "--yes", "--json", env=env)
    assert done.returncode == 0, done.stderr
    builder = json.loads(done.stdout)["builder"]["id"]
    waited = af("wait", builder, "--for", "idle", "--timeout", "300", env=env)
    assert waited.returncode == 0, waited.stderr
    status = json.loads(af("status", "--json").stdout)["builders"][0]["status"]
    assert (status["state"], status["source"]) == ("idle", "hook")

    (repo / "agent_runtime.json").unlink()
    sent = af("send", builder, "more", env=env)
    assert sent.returncode == 5
    assert "is not declared any more" in sent.stdout
    assert af("status").returncode == 0
