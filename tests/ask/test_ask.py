"""`SubagentRunner.ask`: what the agent gets, and what comes back."""

from __future__ import annotations

import inspect
import json
import os
import re
from pathlib import Path

import pytest
from msgspec.structs import replace

from agent_farm.ask import ConfigManager, SourcesManager, SubagentRunner
from agent_farm.ask.agent_run import Transcript
from agent_farm.errors import AgentFarmError, NotFound, ToolMissing, UsageError
from agent_farm.runtimes import ClaudeCodeAdapter
from tests.ask.stage import Stage
from tests.gitrepo import make_repo

EMPTY = (".mcp.json", ".cursor/mcp.json", "opencode.json")


def bundle(monkeypatch: pytest.MonkeyPatch, program: Path | None) -> None:
    """The `claude` that comes with af, or none."""
    words = (str(program),) if program else None
    monkeypatch.setattr(ClaudeCodeAdapter, "cli", replace(ClaudeCodeAdapter.cli, bundled=lambda: words))


def test_runner_keeps_its_config_and_sources() -> None:
    config = ConfigManager()
    sources = SourcesManager(config)
    runner = SubagentRunner(config, sources)
    assert runner.config is config
    assert runner.sources is sources


def test_methods_take_sources_and_question_by_name() -> None:
    assert {"sources", "question"} <= set(inspect.signature(SubagentRunner.ask).parameters)
    assert {"sources"} <= set(inspect.signature(SubagentRunner.chat).parameters)


def test_answer_is_the_agents_stdout(stage: Stage, app: Path) -> None:
    stage.script("import sys\nsys.stdout.write('line one\\nline two\\n')")
    assert stage.runner.ask(sources=["app"], question="Why?") == {"answer": "line one\nline two\n"}


def test_directory_is_private_and_named_by_a_random_uuid(stage: Stage, app: Path) -> None:
    stage.runner.ask(sources=["app"], question="Why?")
    first = stage.seen()
    stage.runner.ask(sources=["app"], question="Why?")
    uuid4 = r"[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}"
    assert re.fullmatch(rf"lctx-{uuid4}", Path(first["cwd"]).name)
    assert Path(first["cwd"]).parent == stage.tmp.resolve()
    assert first["mode"] == 0o700
    assert stage.seen()["cwd"] != first["cwd"]


def test_configurations_without_servers_and_hooks_lie_in_it_with_their_parents(
    stage: Stage, app: Path
) -> None:
    stage.runner.ask(sources=["app"], question="Why?")
    files = stage.seen()["files"]
    assert {name: files[name].strip() for name in EMPTY} == dict.fromkeys(EMPTY, "{}")
    assert json.loads(files[".gemini/settings.json"]) == {"hooksConfig": {"enabled": False}}


def test_each_kind_of_source_is_a_link(stage: Stage, app: Path, tmp_path: Path) -> None:
    readme = stage.file("README.md")
    stage.sources.add("readme", str(readme))
    stage.sources.add("lib", f"file://{make_repo(tmp_path / 'lib')}")
    stage.runner.ask(sources=["app", "readme", "lib"], question="Why?")
    clone = stage.config.directory / "sources" / "git" / "lib"
    assert stage.seen()["links"] == {"app": str(app), "readme": str(readme), "lib": str(clone)}


def test_a_group_stands_for_its_sources(stage: Stage, app: Path) -> None:
    other = stage.directory("other")
    stage.sources.add("other", str(other))
    document = json.loads(stage.config.path.read_text())
    stage.config.path.write_text(json.dumps({**document, "groups": {"both": {"sources": ["app", "other"]}}}))
    stage.runner.ask(sources=["both", "app"], question="Why?")
    assert stage.seen()["links"] == {"app": str(app), "other": str(other)}
    with pytest.raises(UsageError, match="A group both already exists"):
        stage.sources.add("both", str(app))


def test_unknown_source_is_named_and_nothing_is_made(stage: Stage, app: Path) -> None:
    with pytest.raises(NotFound, match="not found: ap2") as caught:
        stage.runner.ask(sources=["app", "ap2"], question="Why?")
    assert "Did you mean app?" in str(caught.value.why)
    assert not stage.record.exists()
    assert stage.left() == []


def test_documented_command_is_spawned_literally(
    stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    claude = stage.script(name="claude")
    monkeypatch.setenv("PATH", f"{claude.parent}:{os.environ['PATH']}")
    template = {"ask": "claude -p {prompt_file} --mcp-config {mcp_config}", "chat": "claude"}
    stage.write({"defaultAgent": "claude-code", "agents": {"claude-code": template}})
    stage.runner.ask(sources=["app"], question="Why?")
    seen = stage.seen()
    here = seen["cwd"]
    assert seen["argv"] == ["-p", f"{here}/prompt.md", "--mcp-config", f"{here}/.mcp.json"]


def test_source_dirs_is_one_word_per_real_path(stage: Stage, app: Path) -> None:
    real = stage.directory("with space")
    link = stage.root / "user" / "link"
    link.symlink_to(real)
    stage.sources.add("linked", str(link))
    stage.use("{agent} --add-dir={source_dirs} -- {source_dirs}")
    stage.runner.ask(sources=["app", "linked"], question="Why?")
    assert stage.seen()["argv"] == [f"--add-dir={app}", f"--add-dir={real}", "--", str(app), str(real)]


def test_a_flag_for_directories_disappears_without_any(stage: Stage) -> None:
    stage.sources.add("readme", str(stage.file("README.md")))
    stage.use("{agent} --add-dir={directories} end")
    stage.runner.ask(sources=["readme"], question="Why?")
    assert stage.seen()["argv"] == ["end"]


def test_no_word_of_a_command_meets_a_shell(stage: Stage, app: Path) -> None:
    stage.use("{agent} '$(touch pwned)' ';' '`id`' '{\"json\": {prompt}}' {unknown}", stdin="{prompt_file}")
    stage.runner.ask(sources=["app"], question="{mcp_config} $(id)")
    argv = stage.seen()["argv"]
    assert argv[:3] == ["$(touch pwned)", ";", "`id`"]
    assert "{mcp_config} $(id)" in argv[3]
    assert argv[4] == "{unknown}"


def test_standard_input_is_the_named_file_or_nothing(stage: Stage, app: Path) -> None:
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.seen()["stdin"] == ""
    stage.use(stdin="{prompt_file}")
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.seen()["stdin"] == stage.seen()["files"]["prompt.md"]


def test_default_agent_is_always_the_one_that_is_run(stage: Stage, app: Path) -> None:
    other = stage.script("print('other')", name="other")
    stage.write(
        {
            "defaultAgent": "second",
            "agents": {"first": {"ask": "/bin/false"}, "second": {"ask": [str(other)], "chat": [str(other)]}},
        }
    )
    assert stage.runner.ask(sources=["app"], question="Why?") == {"answer": "other\n"}


def test_failure_carries_the_agents_stderr(stage: Stage, app: Path) -> None:
    stage.script("import sys\nsys.stderr.write('boom: no credit left\\n')\nsys.exit(3)")
    with pytest.raises(AgentFarmError, match="boom: no credit left") as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert "exit code 3" in caught.value.what


def test_agent_killed_by_a_signal_is_a_failure(stage: Stage, app: Path) -> None:
    stage.script("import os\nos.kill(os.getpid(), 9)")
    with pytest.raises(AgentFarmError, match="SIGKILL"):
        stage.runner.ask(sources=["app"], question="Why?")


def test_stderr_is_shown_while_the_agent_works(stage: Stage, app: Path) -> None:
    stage.script("import sys\nsys.stderr.write('\\x1b[31mreading main.py\\x1b[0m\\n')\nprint('done')")
    stage.runner.ask(sources=["app"], question="Why?")
    assert "reading main.py" in stage.told


def test_missing_program_says_what_to_install(
    stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(stage.root / "bin"))
    bundle(monkeypatch, None)
    stage.write({})
    with pytest.raises(ToolMissing, match="claude-code needs claude, which is not installed") as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert caught.value.hint == "npm install -g @anthropic-ai/claude-code"
    assert stage.left() == []


def test_the_claude_that_comes_with_af_answers_where_there_is_no_other(
    stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    line = json.dumps({"type": "result", "subtype": "success", "is_error": False, "result": "bundled"})
    bundled = stage.script(f"print({line!r})", name="inside")
    bundle(monkeypatch, bundled)
    monkeypatch.setenv("PATH", "/usr/bin:/bin")
    stage.write({})
    assert stage.runner.ask(sources=["app"], question="Why?") == {"answer": "bundled"}


def test_missing_program_names_the_agents_that_are_there(
    stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    stage.script(name="codex")
    monkeypatch.setenv("PATH", str(stage.root / "bin"))
    bundle(monkeypatch, None)
    stage.write({})
    with pytest.raises(ToolMissing) as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert str(caught.value.why).startswith("codex could answer")


def test_a_question_is_looked_at_before_anything_is_made(
    stage: Stage, app: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TMPDIR", "/nonexistent")
    with pytest.raises(UsageError, match="The question is empty"):
        stage.runner.ask(sources=["app"], question=" ")


def test_silent_agent_shows_a_sign_of_life() -> None:
    told: list[str] = []
    now = iter([0.0, 5.0, 16.0, 16.0, 20.0])
    progress = Transcript(None, told.append, clock=lambda: next(now))
    for _ in range(3):
        progress.tick()
    assert told == ["… still at work after 16 s"]


def test_without_sources_they_are_listed(stage: Stage, app: Path) -> None:
    with pytest.raises(UsageError) as caught:
        stage.runner.ask(sources=[], question="Why?")
    assert any("app" in line and str(app) in line for line in caught.value.evidence)


def test_an_agent_cannot_ask_in_turn(stage: Stage, app: Path) -> None:
    stage.runner.ask(sources=["app"], question="Why?")
    inner = SubagentRunner(stage.config, stage.sources, environ=stage.seen()["env"])
    with pytest.raises(AgentFarmError, match="inside an answer"):
        inner.ask(sources=["app"], question="Why?")
