"""Orders for adapters under test, and a reader of the events their hooks report."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.environment import allowed_environment

# Records a hook's payload as one line; stands for the pane's report command where only payloads matter.
_RECORD = "import json,sys;open(sys.argv[1],'a').write(json.dumps(json.load(sys.stdin))+'\\n')"


def make_order(root: Path, worktree: Path, **given: Any) -> Start:
    run_directory = root / "run"
    run_directory.mkdir(parents=True, exist_ok=True, mode=0o700)
    log = run_directory / "hooks.jsonl"
    defaults: dict[str, Any] = {
        "mode": "pane",
        "builder": "task-a7f3-x9k2",
        "run": "0123456789ab",
        "home": run_directory,
        "place": run_directory,
        "top": worktree,
        "cwd": worktree,
        "env": {**allowed_environment(os.environ), "TERM": "xterm-256color"},
        "report": (sys.executable, "-I", "-S", "-c", _RECORD, str(log)),
    }
    if given.get("prompt") is not None and "prompt_file" not in given:
        defaults["prompt_file"] = run_directory / "prompt.txt"
        defaults["prompt_file"].write_bytes(given["prompt"].encode())
    return Start(**{**defaults, **given})


def make_start(place: Path, **given: Any) -> Start:
    """A headless start, for what is made of a CLI's words alone."""
    return Start(
        **{"mode": "headless", "env": {}, "cwd": place, "home": place, "place": place, "top": place, **given}
    )


def hook_payloads(order: Start) -> list[dict[str, Any]]:
    log = order.place / "hooks.jsonl"
    return [json.loads(line) for line in log.read_text().splitlines()] if log.exists() else []


def hook_names(order: Start) -> list[str]:
    return [payload["hook_event_name"] for payload in hook_payloads(order)]
