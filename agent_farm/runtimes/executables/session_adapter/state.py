"""The state file of a session, which the agent writes too: what it says is kept, what is missing is added."""

from __future__ import annotations

import json
import re
import subprocess
from pathlib import Path
from typing import Any

from agent_farm.runtimes.executables.session_adapter.files import replace_json


def begin_state(path: Path, brief: Path) -> None:
    state = _load(path)
    state.setdefault("lego_name", _lego_name(path, brief))
    state["status"] = "in-progress"
    state.setdefault("current_substep", "starting")
    state.setdefault("completed_substeps", [])
    state.setdefault("failure_count", 0)
    state.setdefault("artifacts", [])
    path.parent.mkdir(parents=True, exist_ok=True)
    replace_json(path, state)


def end_state(path: Path, *, failed: bool, artifacts: list[str]) -> None:
    state = _load(path)
    state["status"] = "failed" if failed else "completed"
    count = state.get("failure_count")
    state["failure_count"] = (count if isinstance(count, int) else 0) + int(failed)
    known = state.get("artifacts")
    known = [str(name) for name in known] if isinstance(known, list) else []
    state["artifacts"] = list(dict.fromkeys([*known, *artifacts]))
    state.setdefault("completed_substeps", [])
    if not failed and state.get("current_substep") == "starting":
        state["current_substep"] = "done"
    replace_json(path, state)


def head(cwd: Path) -> str | None:
    return _git(cwd, "rev-parse", "HEAD").strip() or None


def changed_files(cwd: Path, since: str | None) -> list[str]:
    """What differs from `since`, committed or not, and what is new; empty outside a repository."""
    names = _git(cwd, "diff", "--name-only", "-z", since).split("\0") if since else []
    names += _git(cwd, "ls-files", "--others", "--exclude-standard", "-z").split("\0")
    return [name for name in dict.fromkeys(names) if name]


def _lego_name(path: Path, brief: Path) -> str:
    """From the brief's heading, else from the names the files go by."""
    heading = re.search(r"^#\s*(?:LEGO:\s*)?(.+)$", brief.read_text(errors="replace"), re.MULTILINE)
    if heading:
        return heading[1].strip()
    for stem, pattern in ((path.stem, r"lego_state_(.+)"), (brief.stem, r"session_(.+)_brief")):
        found = re.fullmatch(pattern, stem)
        if found:
            return found[1]
    return brief.stem


def _load(path: Path) -> dict[str, Any]:
    """Empty where there is none; one that is damaged is moved aside, never overwritten."""
    try:
        loaded = json.loads(path.read_bytes())
    except FileNotFoundError:
        return {}
    except ValueError:
        loaded = None
    if isinstance(loaded, dict):
        return loaded
    path.replace(path.with_name(path.name + ".damaged"))
    return {}


def _git(cwd: Path, *words: str) -> str:
    try:
        done = subprocess.run(
            ["git", *words],
            cwd=cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            check=False,
            timeout=30,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    return done.stdout.decode("utf-8", "surrogateescape") if done.returncode == 0 else ""
