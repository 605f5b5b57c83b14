"""Sessions of a farm as a program has them: triggered, and their records as JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import msgspec

from agent_farm.farm.farm import open_farm
from agent_farm.operations.operation import Context
from agent_farm.operations.trigger import Trigger, Triggered, trigger
from agent_farm.sessions import stores
from agent_farm.sessions.records import SessionLog


@dataclass(frozen=True)
class Records:
    log: SessionLog

    def get(self, session_id: str, **more: Any) -> dict[str, Any]:
        return dict(msgspec.to_builtins(self.log.load(session_id, **more)))

    def find(self, **more: Any) -> list[dict[str, Any]]:
        return [dict(msgspec.to_builtins(one)) for one in self.log.find(**more)]


def open_sessions(root: Path) -> Records:
    return Records(stores.open_sessions(root))


def triggered(root: Path, prompt: str, *, wait: bool = False) -> Triggered:
    return trigger.answer_to(Context(lambda: open_farm(root)), Trigger(prompt=prompt, wait=wait))


def started(root: Path, prompt: str) -> str:
    """The id of a session that goes on by itself."""
    id = triggered(root, prompt).session_id
    assert id is not None
    return id
