"""The board's view of the farm: every change as it happens, from the same feed that the dashboard uses."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_farm.board.verbs_on_a_thread import ask
from agent_farm.errors import AgentFarmError
from agent_farm.live.feed import Live
from agent_farm.operations.landing_queue import LandingQueue
from agent_farm.operations.shown import BuilderShown


class Trouble(Struct, frozen=True):
    what: str | None = None
    hint: str | None = None


class _Told(Struct, frozen=True):
    builders: tuple[BuilderShown, ...] = ()
    removed: tuple[str, ...] = ()
    problem: Trouble | None = None


class Known(Struct, frozen=True):
    """All builders and the landing queue after a change; `trouble` is why the farm cannot be read."""

    builders: dict[str, BuilderShown]
    landing: LandingQueue | None = None
    trouble: Trouble | None = None


async def follow(root: Path) -> AsyncGenerator[Known]:
    live = Live(root, _no_facts)
    known: dict[str, BuilderShown] = {}
    trouble: Trouble | None = None
    landing: LandingQueue | None = None
    try:
        while True:
            async for message in live.stream():
                if message.event not in ("snapshot", "change", "problem", "landing"):
                    continue
                if message.event == "landing":
                    landing = await _landing(root)
                elif message.event == "problem":
                    said = msgspec.json.decode(message.data, type=Trouble)
                    trouble = said if said.what else None
                else:
                    told = msgspec.json.decode(message.data, type=_Told)
                    kept = known if message.event == "change" else {}
                    known = {**kept, **{one.id: one for one in told.builders}}
                    for id in told.removed:
                        known.pop(id, None)
                    if message.event == "snapshot":
                        trouble, landing = told.problem, await _landing(root)
                yield Known(known, landing, trouble)
    finally:
        live.close()


async def _landing(root: Path) -> LandingQueue | None:
    """Also None if it cannot be read: the next landing reports why."""
    try:
        found: LandingQueue = await ask(root, "land_status")
    except AgentFarmError:
        return None
    return found


def _no_facts(farm: object) -> dict[str, Any]:
    return {}
