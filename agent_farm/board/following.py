"""The board's view of the farm: every change as it comes, by the same feed that the page has."""

from __future__ import annotations

from collections.abc import AsyncGenerator
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from agent_farm.live.feed import Live
from agent_farm.operations.shown import BuilderShown


class Trouble(Struct, frozen=True):
    what: str | None = None
    hint: str | None = None


class _Told(Struct, frozen=True):
    builders: tuple[BuilderShown, ...] = ()
    removed: tuple[str, ...] = ()
    problem: Trouble | None = None


class Known(Struct, frozen=True):
    """All builders after a change; `trouble` is what keeps the farm from being read."""

    builders: dict[str, BuilderShown]
    trouble: Trouble | None = None


async def follow(root: Path) -> AsyncGenerator[Known]:
    live = Live(root, _no_facts)
    known: dict[str, BuilderShown] = {}
    trouble: Trouble | None = None
    try:
        while True:
            async for message in live.stream():
                if message.event not in ("snapshot", "change", "problem"):
                    continue
                if message.event == "problem":
                    said = msgspec.json.decode(message.data, type=Trouble)
                    trouble = said if said.what else None
                else:
                    told = msgspec.json.decode(message.data, type=_Told)
                    kept = known if message.event == "change" else {}
                    known = {**kept, **{one.id: one for one in told.builders}}
                    for id in told.removed:
                        known.pop(id, None)
                    trouble = told.problem if message.event == "snapshot" else trouble
                yield Known(known, trouble)
    finally:
        live.close()


def _no_facts(farm: object) -> dict[str, Any]:
    return {}
