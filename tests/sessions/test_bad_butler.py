"""A butler.toml that is wrong is named with its reason, by every command that meets it."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.server.address import server_files
from agent_farm.server.launching import running_server
from tests.conftest import Af
from tests.gitrepo import write_files

FILE = "codev/roster/health/butler.toml"
MISTAKES = {
    'runtime = "clade"': ("butler.runtime is 'clade'", "Did you mean claude-code?"),
    "model = 5": ("butler.model must be a string", "It is 5."),
    'runtime = "codex"\ntransport = "sse"': ("butler.transport is sse", 'write transport = "http"'),
    '[[butler.schedule]]\nname = "daily"\ncron = "at 8"\nprompt = "x"': (
        "schedule daily: 'at 8' is not a cron expression",
        "hint: five fields",
    ),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_start_run_and_doctor_say_what_is_wrong(repo: Path, af: Af, mistake: str) -> None:
    write_files(repo, {FILE: f"[butler]\n{mistake}\n"})
    what, why = MISTAKES[mistake]
    for words in (("butler", "start"), ("trigger", "x"), ("run", "--runtime", "demo", "x")):
        done = af(*words)
        assert done.returncode == 1, done.stderr
        assert f"{FILE}: {what}" in done.stderr
        assert why in done.stderr
        assert "Traceback" not in done.stderr
    assert running_server(repo) is None
    assert not server_files(repo).address.exists()
    found = af("doctor")
    assert found.returncode == 1
    assert f"{FILE}: {what}" in found.stdout
    assert f"hint: $EDITOR {FILE}" in found.stderr


def test_doctor_looks_at_every_butler(repo: Path, af: Af) -> None:
    write_files(repo, {FILE: "", "codev/roster/mail/butler.toml": "[butler]\nport = -1\n"})
    found = af("doctor")
    assert found.returncode == 1
    assert "mail/butler.toml: butler.port must be a whole number" in found.stdout
    assert any(line.startswith("ok") and "health" in line for line in found.stdout.splitlines())
    write_files(repo, {"codev/roster/mail/butler.toml": ""})
    again = af("doctor")
    assert (again.returncode, "health, mail" in again.stdout) == (0, True), again.stdout


def test_a_server_that_ends_at_once_says_why(repo: Path, af: Af) -> None:
    """What the file cannot show: here, a database that is none."""
    write_files(repo, {".agent-farm/butler.db": "no database " * 100})
    (repo / ".agent-farm" / "butler.db").chmod(0o600)
    done = af("butler", "start")
    assert done.returncode == 1
    assert "The server ended at once" in done.stderr
    assert "butler.db is damaged" in done.stderr


def test_a_runtime_named_for_one_session_has_to_speak_the_transport(repo: Path, af: Af) -> None:
    write_files(repo, {FILE: '[butler]\nruntime = "gemini"\ntransport = "sse"\n'})
    done = af("run", "--runtime", "demo", "x")
    assert done.returncode == 2
    assert "health serves its sessions over sse" in done.stderr
    assert "demo only speaks streamable HTTP" in done.stderr
