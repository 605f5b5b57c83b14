"""The three commands of an adapter executable, and the end of whatever it left in the background."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.paths import STATE_NAME
from agent_farm.runtimes.worktree_files import main_checkout, top_of

STATUSES = ("pending", "active", "completed", "failed")
_SECONDS = 120
_PR_SET_CHILD_SUBREAPER = 36


class AdapterFailed(Exception):
    """What the executable said on standard error, or what was wrong with its answer."""


@dataclass(frozen=True)
class Order:
    command: list[str]
    name: str
    brief: str
    state: str
    prompt: str
    cwd: str
    timeout_seconds: float
    hook: tuple[str, ...] | list[str] = ()
    session: str | None = None


def spawn(order: Order) -> str:
    """The session id, which is all of standard output."""
    session = _call(order, "spawn", order.brief, order.state, order.prompt).strip()
    if not session or "\n" in session:
        raise AdapterFailed(f"{order.name} spawn printed no session id but {session[:200]!r}")
    return session


def resume(order: Order, session: str, prompt: str) -> str:
    return _call(order, "resume", session, order.state, prompt).strip()


def check_status(order: Order, session: str) -> str:
    status = _call(order, "check_status", session).strip()
    if status not in STATUSES:
        raise AdapterFailed(
            f"{order.name} check_status printed {status[:200]!r}, none of {', '.join(STATUSES)}"
        )
    return status


def failed_session(order: Order, session: str) -> AdapterFailed:
    """Says where the log is, for an adapter that keeps one where the contract wants it, or where ours do."""
    cwd = Path(order.cwd)
    top = top_of(cwd)
    places = (cwd, (main_checkout(top) or top) / STATE_NAME) if session == Path(session).name else ()
    logs = [place / "sessions" / session / "adapter.log" for place in places]
    found = next((log for log in logs if log.is_file()), None)
    return AdapterFailed(f"session {session} failed" + (f"; see {found}" if found else ""))


def load_state(order: Order) -> dict[str, Any] | None:
    """The session's own account of itself; None where it has not written one."""
    try:
        state = json.loads(Path(order.state).read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return None
    return state if isinstance(state, dict) else None


def adopt_descendants() -> None:
    """Sessions live in the background: the kernel hands them to us, so that a stop ends them (Linux)."""
    if sys.platform.startswith("linux"):
        import ctypes

        ctypes.CDLL(None).prctl(_PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0)


def _call(order: Order, *words: str) -> str:
    try:
        done = subprocess.run(
            [*order.command, *words],
            cwd=order.cwd,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise AdapterFailed(f"{order.name} {words[0]}: {error}") from error
    if done.returncode:
        said = done.stderr.strip().splitlines()
        why = said[-1][:500] if said else "it said nothing"
        raise AdapterFailed(f"{order.name} {words[0]} ended with {done.returncode}: {why}")
    return done.stdout


def end_descendants(grace: float = 3.0) -> None:
    """TERM, then KILL, until no process of the session is left."""
    from agent_farm.descendants import end_children

    end_children(grace)
