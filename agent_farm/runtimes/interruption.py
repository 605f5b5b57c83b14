"""Interrupted: a cancellation that does not lose what the run had told until then."""

from __future__ import annotations

import asyncio

from agent_farm.runtimes.result import RuntimeResult


class Interrupted(asyncio.CancelledError):
    """`partial` has no usage or cost that the runtime did not tell."""

    def __init__(self, partial: RuntimeResult) -> None:
        super().__init__()
        self.partial = partial
