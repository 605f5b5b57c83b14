"""Scripts of `skills/` run unasked, by their own path; no other file runs through theirs."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from agent_farm.runtimes.skills import skill_scripts
from tests.fake_api import FakeApi
from tests.gitrepo import write_files
from tests.runtimes.real.clis import CLIS, require_clis

RULED = [name for name in CLIS if name != "codex"]  # its sandbox confines what a command does instead


@pytest.mark.runtimes
@pytest.mark.parametrize("name", RULED)
def test_a_script_runs_and_what_is_reached_through_its_directory_does_not(
    api: FakeApi, repo: Path, tmp_path: Path, name: str
) -> None:
    require_clis()
    cli, home = CLIS[name], tmp_path / "butler"
    script = "#!/bin/sh\ntouch {}\n"
    files = {
        "butler/skills/daily/run.sh": script.format("ran"),
        "butler/evil.sh": script.format("evil-ran"),
        "evil.sh": script.format("evil-ran"),
    }
    write_files(tmp_path, files)
    for file in files:
        (tmp_path / file).chmod(0o755)

    def ask(command: str) -> None:
        prompt = f"[[shell:{command}]]"
        env = cli.environment(api)
        result = asyncio.run(cli.adapter.invoke(prompt, "", {}, env, cwd=home, model=cli.model))
        assert result.failure is None or result.failure.kind == "failed", result

    ask("skills/daily/run.sh")
    assert (home / "ran").exists()
    for command in (
        "sh skills/../../evil.sh",
        "sh skills/../evil.sh",
        "skills/daily/../../evil.sh",
        "sh skills/daily/run.sh; sh evil.sh",
    ):
        ask(command)
        assert not (home / "evil-ran").exists(), command


def test_only_files_that_lie_there_are_scripts(tmp_path: Path) -> None:
    names = ["skills/a.sh", "skills/b/c d.sh", "skills/b/x*.sh", "skills/b/e.py", "outside/f.sh"]
    write_files(tmp_path, dict.fromkeys(names, "#!/bin/sh\n"))
    (tmp_path / "skills" / "link.sh").symlink_to("../outside/f.sh")
    (tmp_path / "skills" / "tree").symlink_to("../outside")
    (tmp_path / "skills" / "near.sh").symlink_to("a.sh")
    assert set(skill_scripts(tmp_path)) == {"skills/a.sh", "skills/b/e.py", "skills/near.sh"}
    assert skill_scripts(tmp_path, executable=True) == ()
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "skills").symlink_to(tmp_path / "outside")
    assert skill_scripts(tmp_path / "elsewhere") == ()
