"""The landing queue on the board: a line while something is going on, and a mark for each waiting builder."""

from __future__ import annotations

from collections.abc import Mapping

from rich.text import Text

from agent_farm.operations.landing_queue import LandingQueue
from agent_farm.printable import printable


def landing_line(queue: LandingQueue | None) -> Text | None:
    """None if no landing is running or stopped."""
    if queue is None or queue.state not in ("running", "stopped"):
        return None
    stopped = queue.state == "stopped"
    parts = [f"Landing on {printable(queue.into or '')}{' stopped' if stopped else ''}", _counts(queue)]
    parts += [f"{len(queue.waiting)} to go"] if queue.waiting else []
    if stopped:
        parts += [printable(line) for line in queue.problem[:1]]
    elif queue.groups:
        parts.append(f"checking {', '.join(queue.groups[0])}")
    return Text(
        " · ".join(filter(None, parts)),
        "bold yellow" if stopped else "cyan",
        no_wrap=True,
        overflow="ellipsis",
    )


def _counts(queue: LandingQueue) -> str:
    counts = ((len(queue.landed), "landed"), (len(queue.returned), "came back"))
    return ", ".join(f"{number} {word}" for number, word in counts if number)


def landing_marks(queue: LandingQueue | None) -> Mapping[str, str]:
    """The text in the list for each builder that waits to land."""
    if queue is None or queue.state not in ("running", "stopped"):
        return {}
    checked = queue.groups[0] if queue.groups and queue.state == "running" else ()
    return {
        one.id: "passed" if one.held else "checking" if one.id in checked else "to land"
        for one in queue.waiting
    }


def news(before: LandingQueue | None, now: LandingQueue | None) -> list[str]:
    """What has happened to the queue since the last look: which work has landed and which has not."""
    if before is None or now is None:
        return []
    landed = {(one.id, one.commit) for one in before.landed}
    returned = {(one.id, one.what) for one in before.returned}
    told = [f"{one.id} landed on {now.into}" for one in now.landed if (one.id, one.commit) not in landed]
    told += [
        f"{one.id} did not land: {printable(one.what)}"
        for one in now.returned
        if (one.id, one.what) not in returned
    ]
    if now.state == "stopped" and before.state == "running":
        told += [printable(line) for line in now.problem]
    if now.state == "done" and before.state == "running" and len(now.landed) + len(now.returned) > 1:
        names = ", ".join(one.id for one in now.returned)
        told.append(f"The landing is done: {_counts(now)}{f' ({names})' if names else ''}")
    return told
