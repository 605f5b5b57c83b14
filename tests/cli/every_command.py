"""One harmless call of each command, for tests that hold whatever the command is."""

from __future__ import annotations

import json
import subprocess

from agent_farm.cli.command_table import COMMANDS

# A builder that does not exist: what the command makes of the place comes first.
ID = "task-0000-none"
WORDS = {
    "spawn": ["spawn", "--runtime", "demo", "Fix it"],
    "status": ["status"],
    "attach": ["attach", ID],
    "send": ["send", ID, "hello"],
    "queue": ["queue"],
    "wait": ["wait", ID, "--timeout", "1"],
    "capture": ["capture", ID],
    "logs": ["logs", ID],
    "path": ["path", ID],
    "stop": ["stop", ID],
    "resume": ["resume", ID],
    "recover": ["recover", "--yes"],
    "diff": ["diff", ID],
    "merge": ["merge", ID],
    "check": ["check", ID],
    "compare": ["compare", ID, f"{ID}-2"],
    "keep": ["keep", ID],
    "land": ["land", ID],
    "review": ["review", ID],
    "conflicts": ["conflicts"],
    "sync": ["sync", ID],
    "pr": ["pr", ID],
    "prune": ["prune"],
    "restore": ["restore", ID],
    "setup": ["setup", ID],
    "eject": ["eject", ID],
    "import": ["import"],
    "uninstall": ["uninstall"],
    "sessions": ["sessions"],
    "butler": ["butler", "status"],
    "schedule": ["schedule", "list"],
    "credentials": ["credentials", "list"],
    "sources": ["sources", "list"],
    "init": ["init"],
    "doctor": ["doctor"],
    "config": ["config", "list"],
    "pool": ["pool", "fill"],
    "fleet": ["fleet", "status"],
    "notify": ["notify"],
    "costs": ["costs"],
    "tmux": ["tmux"],
    "completion": ["completion", "bash"],
    "runtimes": ["runtimes"],
    "trigger": ["trigger", "hello"],
}
# These start runtimes or serve until they are ended; their own tests look at them.
ELSEWHERE = {"run", "acp", "mcp", "ask", "chat", "dash", "adapter", "board", "serve", "forward", "man"}
# These need no farm.
ANYWHERE = {"tmux", "completion", "sources", "runtimes"}

PRESENT = [name for name in WORDS if name in COMMANDS]
FARM_COMMANDS = [name for name in PRESENT if name not in ANYWHERE]


def assert_clear(done: subprocess.CompletedProcess[str]) -> None:
    """The right result, or an error that a person can act on."""
    assert "Traceback" not in done.stdout + done.stderr, done.stderr
    assert done.returncode in (0, 1, 2, 4, 5, 124), done
    assert "bug in af" not in done.stderr, done.stderr
    if done.returncode:
        assert done.stderr.startswith("error: ") or "\nerror: " in done.stderr or done.stdout, done


def assert_refused(done: subprocess.CompletedProcess[str], *words: str) -> None:
    assert_clear(done)
    assert done.returncode in (1, 2), done
    for word in words:
        assert word in done.stderr, done


def assert_same_as_json(done: subprocess.CompletedProcess[str], code: int) -> None:
    assert done.returncode == code
    document = json.loads(done.stdout)
    assert document["version"] == 1
