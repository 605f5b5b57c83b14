"""Sources: added, listed, removed; the user's own files are never touched."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.ask import ConfigManager, SourcesManager
from agent_farm.ask.targets import detect_kind, without_password
from agent_farm.errors import AgentFarmError, DamagedFile, NotFound, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Context, Nothing
from agent_farm.operations.sources import AskSources, ask_sources, list_sources
from tests.ask.stage import Stage


def _no_farm() -> Farm:
    raise NotFound("No repository here")


NOWHERE = Context(_no_farm)


def test_kinds_are_detected(stage: Stage) -> None:
    directory, file = stage.directory("app"), stage.file("README.md")
    assert detect_kind(str(directory)) == "directory"
    assert detect_kind(str(file)) == "file"
    for url in ("https://host/a.git", "ssh://git@host/a", "git@host:a/b.git", "file:///a/b"):
        assert detect_kind(url) == "git"
    with pytest.raises(UsageError, match=r"llms\.txt is refused"):
        detect_kind("https://host/llms.txt")


def test_relative_path_becomes_absolute(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    path = stage.directory("app")
    monkeypatch.chdir(path.parent)
    assert stage.sources.add("app", "./app").path == path


def test_config_file_has_the_documented_shape(stage: Stage) -> None:
    stage.config.path.unlink()
    path = stage.directory("app")
    stage.sources.add("app", str(path))
    assert json.loads(stage.config.path.read_text()) == {
        "defaultAgent": "claude-code",
        "agents": {},
        "sources": {"app": {"type": "directory", "path": str(path)}},
    }
    assert stage.config.path.stat().st_mode & 0o777 == 0o600


def test_what_is_unknown_in_the_file_is_kept(stage: Stage) -> None:
    stage.config.path.write_text('{"theme": "dark", "sources": {}}')
    stage.sources.add("app", str(stage.directory("app")))
    assert json.loads(stage.config.path.read_text())["theme"] == "dark"


def test_linked_config_file_stays_a_link(stage: Stage) -> None:
    dotfiles = stage.root / "dotfiles.json"
    stage.config.path.rename(dotfiles)
    stage.config.path.symlink_to(dotfiles)
    stage.sources.add("app", str(stage.directory("app")))
    assert stage.config.path.is_symlink()
    assert "app" in json.loads(dotfiles.read_text())["sources"]


@pytest.mark.parametrize(
    "name",
    [
        *(
            "",
            ".",
            "..",
            ".mcp.json",
            ".hidden",
            "a/b",
            "../x",
            "-s",
            "a b",
            "a\nb",
            "é",
            "x" * 65,
            "prompt.md",
        ),
        *("opencode.json", "CLAUDE.md", "agents.md", "lctx-files", "{prompt}", "$(id)"),
    ],
)
def test_hostile_names_are_refused(stage: Stage, name: str) -> None:
    with pytest.raises(UsageError, match="cannot be the name"):
        stage.sources.add(name, str(stage.directory("app")))
    assert stage.sources.list() == ()


@pytest.mark.parametrize("again", ["app", "APP"])
def test_taken_names_are_refused_with_what_they_are(stage: Stage, app: Path, again: str) -> None:
    with pytest.raises(UsageError, match="A source app already exists") as caught:
        stage.sources.add(again, str(stage.directory("other")))
    assert str(app) in str(caught.value.why)
    assert caught.value.hint == "af sources remove app"


@pytest.mark.parametrize(
    "target",
    [
        "--upload-pack=touch pwned",
        "-u",
        "ext::sh -c 'touch pwned'",
        "fd::17",
        "file-transport::x",
        "https://-oProxyCommand=touch/x",
        "ssh://-oProxyCommand=touch/x",
        "ssh://git@-oProxyCommand=x/y",
        "javascript://x",
        "https://host/a\nb",
        "https://host/\0",
        " ",
    ],
)
@pytest.mark.parametrize("kind", [None, "git"])
def test_hostile_targets_are_refused(
    stage: Stage, target: str, kind: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(stage.root)
    with pytest.raises(UsageError):
        stage.sources.add("evil", target, kind=kind)  # type: ignore[arg-type]
    assert not (stage.root / "pwned").exists()
    assert stage.sources.list() == ()


def test_missing_and_strange_paths_are_refused(stage: Stage, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NotFound, match="does not exist"):
        stage.sources.add("gone", str(stage.root / "gone"))
    dangling = stage.root / "dangling"
    dangling.symlink_to(stage.root / "nowhere")
    with pytest.raises(NotFound, match="cannot be a source") as caught:
        stage.sources.add("dangling", str(dangling))
    assert caught.value.why == "the link points to nothing"
    os.mkfifo(stage.root / "fifo")
    with pytest.raises(NotFound, match="cannot be a source"):
        stage.sources.add("fifo", str(stage.root / "fifo"))
    with socket.socket(socket.AF_UNIX) as listening:
        monkeypatch.chdir(stage.root)
        listening.bind("socket")
    with pytest.raises(NotFound, match="cannot be a source"):
        stage.sources.add("socket", str(stage.root / "socket"))


def test_branch_is_for_git_alone(stage: Stage) -> None:
    with pytest.raises(UsageError, match="git sources"):
        stage.sources.add("app", str(stage.directory("app")), branch="main")


def test_removing_never_touches_the_users_files(stage: Stage, app: Path) -> None:
    readme = stage.file("README.md")
    stage.sources.add("readme", str(readme))
    assert stage.sources.remove("app") is None
    assert stage.sources.remove("readme") is None
    assert stage.sources.list() == ()
    assert (app / "main.py").exists()
    assert readme.exists()


def test_source_that_went_away_meanwhile_is_named(stage: Stage, app: Path) -> None:
    app.rename(app.with_name("moved"))
    with pytest.raises(NotFound, match="Source app cannot be read") as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert "does not exist any more" in str(caught.value.why)
    assert list_sources.answer_to(NOWHERE, Nothing()).sources[0].problem == caught.value.why
    assert stage.left() == []


def test_link_that_dangles_now_is_named(stage: Stage) -> None:
    link = stage.root / "link"
    link.symlink_to(stage.directory("app"))
    stage.sources.add("app", str(link))
    link.unlink()
    link.symlink_to(stage.root / "nowhere")
    with pytest.raises(NotFound, match="cannot be read"):
        stage.runner.ask(sources=["app"], question="Why?")
    assert link.is_symlink()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "Expecting property name"),
        ("[]", "Expected `object`"),
        ('{"sources": 7}', "`$.sources`"),
        ('{"sources": {"a": 1}}', "Expected `object`"),
        ('{"sources": {"a": {"type": "directory", "path": "relative"}}}', "must be absolute"),
        ('{"sources": {"../a": {"type": "file", "path": "/x"}}}', "cannot be the name"),
        ('{"sources": {"a": {"type": "git", "url": "--upload-pack=x"}}}', "refused"),
        ('{"sources": {"a": {"type": "git", "url": "ext::sh"}}}', "refused"),
    ],
)
def test_damaged_files_are_named_and_left_as_they_are(stage: Stage, text: str, why: str) -> None:
    stage.config.path.write_text(text)
    with pytest.raises(DamagedFile) as caught:
        stage.sources.list()
    assert why in str(caught.value.why)
    assert stage.config.path.read_text() == text


def test_damaged_file_is_not_written_over(stage: Stage) -> None:
    stage.config.path.write_text("{")
    with pytest.raises(DamagedFile):
        stage.sources.add("app", str(stage.directory("app")))
    assert stage.config.path.read_text() == "{"


def test_directory_that_cannot_be_written_is_said(stage: Stage) -> None:
    sources = SourcesManager(ConfigManager("/dev/null/lctx/config.json"))
    with pytest.raises(AgentFarmError, match="Cannot write"):
        sources.add("app", str(stage.directory("app")))


def test_processes_lose_no_source_of_each_other(stage: Stage) -> None:
    paths = [stage.directory(f"d{number}") for number in range(8)]
    children = [
        subprocess.Popen([sys.executable, "-m", "agent_farm", "sources", "add", path.name, str(path)])
        for path in paths
    ]
    assert [child.wait(timeout=60) for child in children] == [0] * 8
    assert {source.name for source in stage.sources.list()} == {path.name for path in paths}


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("https://user:secret@host/a.git", "https://user:***@host/a.git"),
        ("https://token@host/a.git", "https://***@host/a.git"),
        ("ssh://git@host/a.git", "ssh://git@host/a.git"),
        ("git@host:a.git", "git@host:a.git"),
        ("https://host/a@b", "https://host/a@b"),
    ],
)
def test_passwords_are_not_shown(url: str, shown: str) -> None:
    assert without_password(url) == shown


def test_the_same_for_other_agents(stage: Stage, app: Path) -> None:
    import asyncio

    (listed,) = list_sources.answer_to(NOWHERE, Nothing()).sources
    assert (listed.name, listed.type, listed.path, listed.problem) == ("app", "directory", str(app), None)

    async def in_a_thread() -> str:
        question = AskSources("Why?", ("app",))
        return (await asyncio.to_thread(ask_sources.answer_to, NOWHERE, question)).answer

    assert asyncio.run(in_a_thread()) == "the answer\n"
    assert stage.left() == []


def test_the_farms_runtime_answers_unless_an_agent_is_chosen(stage: Stage) -> None:
    stage.write({})
    assert stage.config.agent_for("codex") == "codex"
    assert stage.config.agent_for("demo") == "claude-code"
    assert stage.config.agent_for(None) == "claude-code"
    stage.write({"defaultAgent": "gemini"})
    assert stage.config.agent_for("codex") == "gemini"
