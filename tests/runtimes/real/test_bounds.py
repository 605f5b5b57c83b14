"""What a session reads and leaves alone, kept by each CLI in its own way."""

from __future__ import annotations

import asyncio
import json
import subprocess
from pathlib import Path

import pytest

from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.reach import session_bounds
from tests.fake_api import FakeApi
from tests.gitrepo import commit_files, write_files
from tests.runtimes.real.clis import CLIS, require_clis

pytestmark = pytest.mark.runtimes
READ = {
    "claude-code": '[[call:Read {{"file_path": "{}"}}]]',
    "codex": "[[shell:cat {}]]",
    "gemini": '[[call:read_file {{"file_path": "{}"}}]]',
    "opencode": '[[call:read {{"filePath": "{}"}}]]',
}
GEMINI_WRITE = '[[call:write_file {{"file_path": "{}", "content": "evil"}}]]'
HOME = "codev/roster/health"


@pytest.mark.parametrize("name", READ)
def test_it_reads_the_checkout_and_changes_nothing_but_its_own(api: FakeApi, repo: Path, name: str) -> None:
    require_clis()
    cli, home = CLIS[name], repo / HOME
    files = {f"{HOME}/butler.toml": "[butler]\n", f"{HOME}/CLAUDE.md": "Be kind."}
    commit_files(repo, {**files, f"{HOME}/skills/a.sh": "#!/bin/sh\n", "docs/todo.md": "TODO-ONE\n"})
    write_files(repo, {".agent-farm/architect.token": "TOKEN-VALUE"})
    bounds = session_bounds(load_butler(repo, "health"), home, root=repo, checkout=repo)

    def ask(prompt: str) -> str:
        env = cli.environment(api)
        result = asyncio.run(
            cli.adapter.invoke(prompt, "Be kind.", {}, env, cwd=home, model=cli.model, bounds=bounds)
        )
        return json.dumps([(call.name, call.result) for call in result.tool_calls]) + api.model_text()

    assert "TODO-ONE" in ask(READ[name].format(repo / "docs" / "todo.md"))
    assert "TOKEN-VALUE" not in ask(READ[name].format(repo / ".agent-farm" / "architect.token"))
    if name != "gemini":  # its shell runs the scripts of skills/ alone
        assert "TOKEN-VALUE" not in ask(f"[[shell:grep -rn TOKEN {repo}]]")
    write = GEMINI_WRITE if name == "gemini" else "[[write:{}]]"
    for kept in ("butler.toml", "CLAUDE.md", "skills/a.sh", "skills/new.sh"):
        ask(write.format(home / kept))
    ask("[[shell:touch skills/touched.sh]]")
    ask(write.format(repo / "docs" / "new.md"))
    changed = subprocess.run(
        ["git", "status", "--porcelain", "--untracked-files=all"],
        cwd=repo, capture_output=True, text=True, check=True,
    ).stdout  # fmt: skip
    assert changed.splitlines() == ["?? .agent-farm/architect.token"]
    ask(write.format(home / "mine.txt"))
    assert (home / "mine.txt").exists()
