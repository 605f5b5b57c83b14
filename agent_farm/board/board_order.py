"""The board's order: builders by what they need, then by age; a filter hides the rest."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Literal

from agent_farm.builders.status import FINISHED, NEEDS_YOU
from agent_farm.operations.shown import BuilderShown

Sorting = Literal["need", "newest", "task"]
SORTINGS: tuple[Sorting, ...] = ("need", "newest", "task")
NEEDED, FAILED, PROVEN, WORKING = "Needs you", "Failed", "Proven", "Working"
QUEUED, IDLE, ENDED = "Queued", "Idle", "Ended"
ORDER = (NEEDED, FAILED, PROVEN, WORKING, QUEUED, IDLE, ENDED)


@dataclass(frozen=True, slots=True)
class Group:
    title: str
    builders: tuple[BuilderShown, ...]


def group_of(builder: BuilderShown) -> str:
    state = builder.status.state
    if state == "failed":
        return FAILED
    if state in NEEDS_YOU:
        return NEEDED
    if _is_proven(builder) and (state == "idle" or state in FINISHED):
        return PROVEN
    if state in FINISHED:
        return ENDED
    return {"idle": IDLE, "queued": QUEUED}.get(state, WORKING)


def _is_proven(builder: BuilderShown) -> bool:
    """Whether its work can land and has not landed yet."""
    landed = builder.git is not None and bool(builder.git.landed)
    return builder.proof is not None and builder.proof.state == "proven" and not landed


def arrange(builders: Iterable[BuilderShown], *, words: str = "", sorting: Sorting = "need") -> list[Group]:
    """All `words` must occur in a builder's id, state, branch, runtime, task or machine."""
    wanted = words.casefold().split()
    found = [one for one in builders if all(word in _searched(one) for word in wanted)]
    if sorting != "need":
        ordered = sorted(found, key=_KEYS[sorting], reverse=sorting == "newest")
        return [Group("Builders", tuple(ordered))] if ordered else []
    groups = ((title, sorted((one for one in found if group_of(one) == title), key=_age)) for title in ORDER)
    return [Group(title, tuple(some)) for title, some in groups if some]


def next_needing(groups: Sequence[Group], current: str | None) -> str | None:
    """The next builder that needs a person, after the current one and then from the top."""
    ids = [one.id for group in groups for one in group.builders]
    start = ids.index(current) + 1 if current in ids else 0
    needing = {one.id for group in groups for one in group.builders if one.status.state in NEEDS_YOU}
    return next((id for id in (*ids[start:], *ids[:start]) if id in needing), None)


def _searched(builder: BuilderShown) -> str:
    words = (
        builder.id,
        builder.status.state,
        builder.branch,
        builder.runtime,
        builder.title,
        builder.host or "",
    )
    return " ".join(words).casefold()


def _age(builder: BuilderShown) -> tuple[int, str, str]:
    state = builder.status.state
    rank = NEEDS_YOU.index(state) if state in NEEDS_YOU else len(NEEDS_YOU)
    return rank, builder.created_at, builder.id


_KEYS: dict[Sorting, Callable[[BuilderShown], str]] = {
    "newest": lambda one: one.created_at,
    "task": lambda one: one.title.casefold(),
}
