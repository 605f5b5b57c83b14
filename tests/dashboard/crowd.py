"""Many builders for little: real records, run directories, worktrees and panes, and no runtime in them."""

from __future__ import annotations

import json
import subprocess
import time
from pathlib import Path

from agent_farm.builders.record import record_from_json
from agent_farm.builders.registry import Registry
from agent_farm.paths import FarmPaths
from tests.gitrepo import git

TASKS = (
    "Fix the login redirect after a password reset", "Move the retry loop into the client",
    "Page through /orders instead of loading all", "Show who changed a price, and when",
    "Replace the hand-written CSV parser", "Let the nightly import go on where it stopped",
    "Escape names in the invoice template", "Say which field of the address is wrong",
    "Cut the cold start of the worker in half", "Test the currency rounding at midnight",
)  # fmt: skip
STATES = (
    *["working"] * 9, *["idle"] * 5, "waiting", "exited", "exited", "failed", "stopped", "preparing",
)  # fmt: skip
REASONS = {
    "waiting": ("Allow `npm test`?", "Which of the two tables is the right one?", "API error: overloaded"),
    "failed": ("exit code 1",),
    "stopped": ("by af stop",),
}
PROTOCOLS = ("cleanup", "experiment", "review")
SPECS = ("0012-csv-export", "0017-audit-log", "0021-price-rules", "0030-bulk-edit")


def gather(root: Path, template: str, count: int, *, worktrees: int = 0) -> list[str]:
    """Beside the builder `template`, `count` more; the first `worktrees` of them with a worktree."""
    paths, ids = FarmPaths(root), []
    registry = Registry(paths)
    document = registry.read()[template].to_json()
    launcher = root.parent / "launcher.py"
    launcher.write_text("#!/bin/sh\nexec sleep 3600\n")
    launcher.chmod(0o755)
    commands: list[str] = []
    with registry.edit() as records:
        for number in range(count):
            record = _record(paths, document, number)
            records[str(record["id"])] = record_from_json(str(record["id"]), record, paths)
            ids.append(str(record["id"]))
            state = STATES[number * 7 % len(STATES)]
            _write_run(paths, record, state, number)
            if state not in ("stopped",):
                commands.append(_session(root, launcher, str(record["session"])))
            if number < worktrees:
                _add_worktree(root, record, number)
    for start in range(0, len(commands), 50):
        subprocess.run(["tmux", *" ; ".join(commands[start : start + 50]).split()], check=True, timeout=60)
    return ids


def _record(paths: FarmPaths, template: dict[str, object], number: int) -> dict[str, object]:
    kind = "protocol" if number % 9 == 4 else "shell" if number % 23 == 7 else "task"
    if number < len(SPECS):
        kind, id = "spec", SPECS[number].partition("-")[0]
    else:
        id = {
            "task": f"task-{number * 7919 % 65536:04x}-{number:04d}",
            "protocol": f"{PROTOCOLS[number % 3]}-{1794990000 + number}",
            "shell": f"shell-{1794990000 + number}-x{number:03d}",
        }[kind]
    return template | {
        "id": id,
        "type": kind,
        "branch": f"builder/{SPECS[number] if kind == 'spec' else id}",
        "worktree": str(paths.worktree(id)),
        "session": paths.session(id),
        "run": f"{number:012x}",
        "task_text": TASKS[(number * 7 + number // 20) % len(TASKS)] if kind == "task" else None,
        "protocol_name": PROTOCOLS[number % 3] if kind == "protocol" else None,
        "protocol_args": {"scope": "src/billing"} if kind == "protocol" else None,
        "spec": f"codev/specs/{SPECS[number]}.md" if kind == "spec" else None,
        "ports": [20000 + number * 10 + offset for offset in range(10)],
        "state": "stopped" if STATES[number * 7 % len(STATES)] == "stopped" else "running",
        "reason": "by af stop" if STATES[number * 7 % len(STATES)] == "stopped" else None,
        "files": [],
    }


def _write_run(paths: FarmPaths, record: dict[str, object], state: str, number: int) -> None:
    run = paths.run(str(record["id"]))
    run.mkdir(parents=True)
    at = time.time() - 40 - number * 37 % 5400
    reasons = REASONS.get(state, (None,))
    event = {"at": at, "run": record["run"], "source": "hook", "event": "Notification", "state": state}
    event["reason"] = reasons[number % len(reasons)]
    (run / "events.jsonl").write_text(json.dumps(event) + "\n")
    (run / "record.json").write_text(json.dumps(record))
    if state in ("exited", "failed"):
        code = int(state == "failed")
        ended = {
            "version": 1,
            "run": record["run"],
            "at": at,
            "exit_code": code,
            "signal": None,
            "seconds": 60,
        }
        (run / "exit.json").write_text(json.dumps(ended))


def _session(root: Path, launcher: Path, session: str) -> str:
    return f"new-session -d -s {session} -- {launcher} {session} 00"


def _add_worktree(root: Path, record: dict[str, object], number: int) -> None:
    worktree = Path(str(record["worktree"]))
    git(root, "worktree", "add", "-q", "-b", str(record["branch"]), str(worktree))
    for index in range(number % 4):
        (worktree / f"new{index}.txt").write_text("x\n")
    if number % 3 == 0:
        git(worktree, "commit", "-q", "--allow-empty", "-m", "work")
