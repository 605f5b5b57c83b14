"""What is said to an editor, in the words of its protocol."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import acp
from acp import schema

from agent_farm.errors import AgentFarmError
from agent_farm.operations.look import Logged
from agent_farm.operations.send import Delivered
from agent_farm.operations.status import Colleague
from agent_farm.server.log_lines import OneLine

# what a builder may do unasked, in the protocol's words
MODES = {
    "ask": ("Ask", "It asks before each change and each command"),
    "edit": ("Edit", "It changes files in its worktree, and asks before each command"),
    "all": ("All", "It asks nothing"),
}


def modes_of(current: str) -> schema.SessionModeState:
    modes = [schema.SessionMode(id=id, name=name, description=told) for id, (name, told) in MODES.items()]
    return schema.SessionModeState(current_mode_id=current, available_modes=modes)


def asks_and_has_ended(now: Colleague, logged: Logged) -> bool:
    """It asked its architect, and waits for a message as an answer."""
    newest = next((event for event in reversed(logged.events) if event.state), None)
    return now.state == "waiting" and newest is not None and newest.state == "idle"


def waits(now: Colleague) -> str:
    """Empty while it needs nobody."""
    if now.state not in ("waiting", "limited", "queued", "interrupted"):
        return ""
    if now.state == "queued":
        return "It is queued: it starts when another builder ends.\n"
    reason = f": {now.reason}" if now.reason else ""
    return f"It is {now.state}{reason}. Its terminal: `af attach {now.id}`\n"


def not_delivered(delivered: Delivered) -> AgentFarmError:
    hint = next(iter(delivered.hints), None)
    what = f"The message was not delivered ({delivered.outcome})"
    return AgentFarmError(what, why=delivered.reason, hint=hint)


def text_of(blocks: Sequence[Any]) -> str:
    """Text as it stands; of a file that the person points to, its name, and its text where it is given."""
    parts = []
    for block in blocks:
        told = block.model_dump(mode="json", by_alias=True, exclude_none=True)
        resource = told.get("resource") or {}
        if told["type"] == "text":
            parts.append(told["text"])
        elif told["type"] == "resource_link":
            parts.append(told["uri"].removeprefix("file://"))
        elif "text" in resource:
            parts.append(f"{resource['uri'].removeprefix('file://')}:\n{resource['text']}")
    return "\n".join(parts)


def as_acp_error(error: AgentFarmError) -> acp.RequestError:
    """With all that a person can do about it in the message: editors show nothing else."""
    lines = [error.sentence, *error.evidence, *([f"hint: {error.hint}"] if error.hint else [])]
    return acp.RequestError(-32603, "\n".join(lines), {"code": error.code})


class Briefly(OneLine):
    """Of a message that the library does not know, or that is not JSON: what is wrong, in a line."""

    def formatException(self, ei: Any) -> str:
        return f"    {ei[1]}"
