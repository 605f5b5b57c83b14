"""`af ask`, `af chat` and `af sources`, as typed."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.launch import Launch
from tests.ask.stage import Stage
from tests.gitrepo import commit_files, make_repo
from tests.runtimes.ptys import on_pty


def af(*args: str, input: str | None = None, cwd: Path | None = None) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "agent_farm", *args],
        input=input or "",
        cwd=cwd,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def test_answer_alone_is_on_stdout(stage: Stage, app: Path) -> None:
    stage.script("import sys\nprint('progress', file=sys.stderr)\nprint('the answer')")
    done = af("ask", "-s", "app", "Why?")
    assert (done.returncode, done.stdout) == (0, "the answer\n")
    assert done.stderr.splitlines() == ["Asking recorder about app", "progress"]


def test_json_is_versioned(stage: Stage, app: Path) -> None:
    done = af("ask", "--json", "-s", "app", "Why?")
    assert json.loads(done.stdout) == {"version": 1, "answer": "the answer\n"}


def test_several_sources(stage: Stage, app: Path) -> None:
    stage.sources.add("docs", str(stage.directory("docs")))
    assert af("ask", "-s", "app", "-s", "docs", "Why?").returncode == 0
    assert set(stage.seen()["links"]) == {"app", "docs"}


def test_question_from_standard_input(stage: Stage, app: Path) -> None:
    assert af("ask", "-s", "app", "-", input="From a file?\n").returncode == 0
    assert "From a file?" in stage.seen()["files"]["prompt.md"]


def test_without_a_source_they_are_listed(stage: Stage, app: Path) -> None:
    done = af("ask", "Why?")
    assert done.returncode == 2
    assert done.stdout == ""
    assert f"app  directory  {app}" in done.stderr
    assert 'hint: af ask -s app "question"' in done.stderr


def test_errors_are_json_too(stage: Stage, app: Path) -> None:
    done = af("ask", "--json", "-s", "nope", "Why?")
    error = json.loads(done.stdout)["error"]
    assert done.returncode == 1
    assert error["code"] == "not-found"
    assert error["hint"] == "af sources list"


def test_control_characters_of_an_agent_do_not_reach_the_terminal(stage: Stage, app: Path) -> None:
    stage.script("import sys\nsys.stderr.write('\\x1b]0;title\\x07\\x1b[2Jseen\\x08\\n')")
    done = af("ask", "-s", "app", "Why?")
    assert "seen" in done.stderr
    assert "\x1b" not in done.stderr
    assert "\x08" not in done.stderr


def test_answer_cannot_move_the_cursor_of_a_terminal(stage: Stage, app: Path) -> None:
    stage.script("sys.stdout.buffer.write('A\\x1b[2J\\x9b2J می‌خواهم\\n'.encode())")
    words = (sys.executable, "-m", "agent_farm", "ask", "-s", "app", "Why?")
    with on_pty(Launch(words, stage.root, dict(os.environ))) as terminal:
        terminal.wait_for("A[2J2J می‌خواهم")
    assert "\x1b[2J" in af("ask", "-s", "app", "Why?").stdout, "a pipe gets every byte"


def test_it_works_outside_any_repository(stage: Stage, app: Path, tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    assert af("ask", "-s", "app", "Why?", cwd=tmp_path / "bare").returncode == 0


def test_a_runtime_that_cannot_be_kept_to_the_sources_is_refused(stage: Stage, app: Path, repo: Path) -> None:
    commit_files(repo, {"agent_runtime.json": '{"runtimes": {"goose": {"acp": ["goose", "acp"]}}}'})
    for name in ("goose", "copilot"):
        done = af("ask", "-s", "app", "--agent", name, "Why?", cwd=repo)
        assert done.returncode == 2
        assert f"af ask does not use the runtime {name}" in done.stderr
        assert "hint: af ask --agent claude-code" in done.stderr
    assert "No agent goose" in af("ask", "-s", "app", "--agent", "goose", "Why?").stderr
    assert stage.left() == []


def test_who_is_asked_in_place_of_the_farms_runtime_is_said(stage: Stage, app: Path, repo: Path) -> None:
    settings = '[spawn]\nruntime = "goose"\n'
    commit_files(
        repo,
        {
            "agent_runtime.json": '{"runtimes": {"goose": {"acp": ["goose", "acp"]}}}',
            "agent-farm.toml": settings,
        },
    )
    stage.write({"agents": {"claude-code": {"ask": str(stage.script())}}})
    told = "spawn.runtime is goose, which af ask does not use; claude-code answers instead"
    asked = af("ask", "-s", "app", "Why?", cwd=repo)
    assert (asked.stdout, asked.stderr.splitlines()[0]) == ("the answer\n", told)
    assert told not in af("ask", "-s", "app", "--agent", "claude-code", "Why?", cwd=repo).stderr


def test_sources_from_add_to_remove(stage: Stage, tmp_path: Path) -> None:
    path, remote = stage.directory("app"), make_repo(tmp_path / "lib")
    assert af("sources", "add", "app", str(path)).stdout == f"app: directory {path}\n"
    added = json.loads(af("sources", "add", "lib", f"file://{remote}", "--branch", "main", "--json").stdout)
    assert added["source"]["branch"] == "main"
    assert af("sources", "list").stdout.splitlines() == [
        f"app  directory  {path}",
        f"lib  git        file://{remote}  @main",
    ]
    shown = json.loads(af("sources", "show", "app", "--json").stdout)
    told = {name: value for name, value in shown["source"].items() if value is not None}
    assert told == {"name": "app", "type": "directory", "path": str(path)}
    assert af("sources", "update").stdout == "updated lib\n"
    some = af("sources", "update", "gone", "lib")
    assert (some.returncode, some.stdout) == (1, "updated lib\n")
    assert some.stderr.count("Source not found: gone") == 1
    assert af("sources", "remove", "app").stdout == "removed app\n"
    assert [item["name"] for item in json.loads(af("sources", "list", "--json").stdout)["sources"]] == ["lib"]
    assert (path / "main.py").exists()


def test_no_sources_is_no_error(stage: Stage) -> None:
    done = af("sources", "list")
    assert (done.returncode, done.stdout) == (0, "")
    assert "hint: af sources add NAME PATH|URL" in done.stderr


@pytest.mark.parametrize("target", ["--upload-pack=touch pwned", "ext::sh -c touch% pwned"])
def test_hostile_urls_are_refused(stage: Stage, target: str, tmp_path: Path) -> None:
    done = af("sources", "add", "evil", "--", target, cwd=tmp_path)
    assert done.returncode == 2
    assert "is refused" in done.stderr
    assert not (tmp_path / "pwned").exists()


def test_help_shows_examples(stage: Stage) -> None:
    assert "af ask -s app" in af("ask", "--help").stdout
    assert "af sources add" in af("sources", "--help").stdout


def test_heavy_modules_are_not_loaded(stage: Stage, app: Path) -> None:
    code = (
        "import sys\nfrom agent_farm.cli.main import run\nrun(['ask', '-s', 'app', 'Why?'])\n"
        "heavy = {'git', 'libtmux', 'pydantic', 'mcp', 'claude_agent_sdk', 'sqlite3'}\n"
        "print(sorted(set(sys.modules) & heavy))"
    )
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=os.environ, timeout=60
    )
    assert done.stdout.splitlines()[-1] == "[]"
