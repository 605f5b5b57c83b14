"""Notifies a person: starts the configured command, detached, with the facts in AF_* variables."""

from __future__ import annotations

import os

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from typing import Any


class Notice:
    """A notice in launch.json: its command, the states it is for, and the variables it gets.

    `env` is what a desktop needs, `names` are variables to take from the runtime's environment: a command
    that notifies a person must get neither the runtime's keys nor its token.
    """

    def __init__(self, raw: Mapping[str, Any]) -> None:
        self.argv = tuple(str(word) for word in raw["argv"])
        self.on = frozenset[str](raw.get("on") or ())
        self.env: Mapping[str, str] = raw.get("env") or {}
        self.names = tuple[str, ...](raw.get("names") or ())

    @classmethod
    def load(cls, raw: object) -> Notice | None:
        return cls(raw) if isinstance(raw, dict) and raw.get("argv") else None

    def is_for(self, state: object) -> bool:
        return state in self.on

    def environment(self, of_runtime: Mapping[str, str], told: Mapping[str, str]) -> dict[str, str]:
        passed = {name: of_runtime[name] for name in self.names if name in of_runtime}
        return {**passed, **self.env, **told}


def start_detached(
    argv: Sequence[str], env: Mapping[str, str], cwd: str, log: str = os.devnull
) -> str | None:
    """None, or why it could not be started. It outlives this process; `log` gets its errors."""
    import subprocess  # rarely needed, and every builder's process would keep it in memory

    try:
        with open(log, "ab") as errors:
            subprocess.Popen(
                list(argv),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=errors,
                cwd=cwd if os.path.isdir(cwd) else "/",
                env=dict(env),
                start_new_session=True,
            )
    except (OSError, ValueError) as error:
        return f"{argv[0]}: {error}"
    return None


def facts(builder: str, runtime: str, worktree: str, event: Mapping[str, object]) -> dict[str, str]:
    known = {
        "AF_BUILDER_ID": builder,
        "AF_RUNTIME": runtime,
        "AF_WORKTREE": worktree,
        "AF_STATE": event.get("state"),
        "AF_EVENT": event.get("event"),
        "AF_REASON": event.get("reason"),
    }
    return {name: str(value or "").replace("\0", "") for name, value in known.items()}
