"""The three commands of an adapter executable: spawn, resume and check_status."""

from __future__ import annotations

import json
import subprocess
import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_farm.paths import STATE_NAME
from agent_farm.runtimes.bounded_run import run_bounded
from agent_farm.runtimes.worktree_facts import main_checkout, top_of

_STATUSES = ("pending", "active", "completed", "failed")
_SECONDS = 120


class AdapterFailed(Exception):
    """What the executable printed on standard error, or what was wrong with its answer."""

    kind = "failed"


class TimeIsOver(AdapterFailed):
    kind = "time-limit"


@dataclass
class DrivenSession:
    """`id` is None until it is spawned. `timeout_seconds` limits each turn."""

    command: list[str]
    name: str
    brief: str
    state: str
    prompt: str
    cwd: str
    timeout_seconds: float
    hook: list[str] = field(default_factory=list)
    id: str | None = None
    _begun: float = field(default_factory=time.monotonic)

    def spawn(self) -> None:
        """All of standard output is the session's id."""
        said = self._call("spawn", self.brief, self.state, self.prompt)
        if not said or "\n" in said:
            raise AdapterFailed(f"{self.name} spawn printed no session id but {said[:200]!r}")
        self.id, self._begun = said, time.monotonic()

    def resume(self, prompt: str) -> str:
        said = self._call("resume", str(self.id), self.state, prompt)
        self._begun = time.monotonic()
        return said

    def status(self) -> str:
        said = self._call("check_status", str(self.id))
        if said not in _STATUSES:
            what = f"{said[:200]!r}, none of {', '.join(_STATUSES)}"
            raise AdapterFailed(f"{self.name} check_status printed {what}")
        if said in ("pending", "active") and time.monotonic() > self._begun + self.timeout_seconds:
            raise TimeIsOver(f"ended after {self.timeout_seconds / 60:g} minutes (timeout_minutes)")
        return said

    def failure(self) -> AdapterFailed:
        """Names the log, which is where the contract says or where our own executables keep it."""
        identity, cwd = str(self.id), Path(self.cwd)
        top = top_of(cwd)
        places = (cwd, (main_checkout(top) or top) / STATE_NAME) if identity == Path(identity).name else ()
        logs = [place / "sessions" / identity / "adapter.log" for place in places]
        found = next((log for log in logs if log.is_file()), None)
        return AdapterFailed(f"session {identity} failed" + (f"; see {found}" if found else ""))

    def load_state(self) -> dict[str, Any] | None:
        """What the session says about itself; None if it has written nothing."""
        try:
            state = json.loads(Path(self.state).read_text(encoding="utf-8"))
        except (OSError, ValueError):
            return None
        return state if isinstance(state, dict) else None

    def _call(self, *words: str) -> str:
        try:
            done = run_bounded([*self.command, *words], cwd=self.cwd, seconds=_SECONDS)
        except (OSError, subprocess.TimeoutExpired) as error:
            raise AdapterFailed(f"{self.name} {words[0]}: {error}") from error
        if done.returncode:
            said = done.stderr.decode(errors="replace").strip().splitlines()
            why = said[-1][:500] if said else "it said nothing"
            raise AdapterFailed(f"{self.name} {words[0]} ended with {done.returncode}: {why}")
        return done.stdout.decode(errors="replace").strip()
