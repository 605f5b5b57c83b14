"""What became of messages and keys: the answer of every verb that types into a builder."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta

from agent_farm.errors import NotDelivered
from agent_farm.operations.operation import Answer
from agent_farm.tmux.delivery import Delivery


class Delivered(Answer):
    id: str
    outcome: Annotated[
        Literal["submitted", "held", "failed", "pressed"],
        Meta(
            description="submitted: the runtime has it; held: nothing was typed; failed: nothing confirms "
            "that it was submitted; pressed: the keys were pressed"
        ),
    ]
    reason: Annotated[
        str | None, Meta(description="Why it was held or failed, or the keys that were pressed")
    ]
    source: Annotated[str | None, Meta(description="What confirms it: event or screen")] = None
    hints: Annotated[tuple[str, ...], Meta(description="Commands that help where it was held")] = ()

    @classmethod
    def of(cls, id: str, delivery: Delivery) -> Delivered:
        return cls(id, delivery.outcome, delivery.reason, delivery.source, delivery.hints)

    @property
    def exit_code(self) -> int:
        return 0 if self.outcome in ("submitted", "pressed") else NotDelivered.exit_code


class Deliveries(Answer):
    deliveries: tuple[Delivered, ...]

    @property
    def exit_code(self) -> int:
        return max((one.exit_code for one in self.deliveries), default=0)


def collect_deliveries(parts: Sequence[Delivered]) -> Deliveries:
    return Deliveries(tuple(parts))
