"""Builders' locks: one command at a time works on a builder."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from typing import TypeVar

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.renames import follow_rename

LOCK_SECONDS = 30.0
_AT_ONCE = 100  # how many builders' locks one command holds

T = TypeVar("T")


class HeldBuilders(Struct, frozen=True):
    """Current records of the builders whose lock is held, and for the others why it is not."""

    records: Mapping[str, BuilderRecord]
    problems: Mapping[str, AgentFarmError]


@contextmanager
def hold_several(farm: Farm, ids: Sequence[str], *, wait: float = 0) -> Iterator[HeldBuilders]:
    """The locks of builders that are free; a busy one is in `problems`, as LockTaken.

    Because this does not wait, two commands over the same builders cannot wait for each other.
    """
    records, problems = dict[str, BuilderRecord](), dict[str, AgentFarmError]()
    with ExitStack() as stack:
        for id in ids:
            try:
                stack.enter_context(lock_of(farm, id, wait=wait))
            except LockTaken as error:
                problems[id] = error
        now = farm.registry.read()
        for id in ids:
            if id in problems:
                continue
            if id not in now:
                farm.paths.builder_lock(id).unlink(missing_ok=True)  # taking the lock created it
                problems[id] = NotFound(f"{id} was removed in the meantime", hint="af status")
                continue
            records[id] = now[id]
            with suppress(AgentFarmError):  # if the worktree is not ours, the next step reports it
                records[id] = follow_rename(farm, now[id])
        yield HeldBuilders(records, problems)


Act = Callable[[Farm, Mapping[str, BuilderRecord]], Mapping[str, T | AgentFarmError]]


def each_held(farm: Farm, ids: Sequence[str], act: Act[T]) -> Iterator[tuple[str, T | AgentFarmError]]:
    """What `act` returned for each, or its error. Many are handled together; a busy one comes last.

    The farm that `act` gets counts its steps over all of them.
    """
    for begin in range(0, len(ids), _AT_ONCE):
        group, busy = ids[begin : begin + _AT_ONCE], list[str]()
        problems, found = _act_on(farm, group, act, begin, len(ids))
        for id in group:
            if len(group) > 1 and isinstance(problems.get(id), LockTaken):
                busy.append(id)
            else:
                yield id, problems[id] if id in problems else found[id]
        for number, id in enumerate(busy, begin + len(group) - len(busy)):
            problems, found = _act_on(farm, [id], act, number, len(ids))
            yield id, problems[id] if id in problems else found[id]


def _act_on(
    farm: Farm, group: Sequence[str], act: Act[T], begin: int, total: int
) -> tuple[Mapping[str, AgentFarmError], Mapping[str, T | AgentFarmError]]:
    def step(what: str, done: float, here: int) -> None:
        farm.step(what, begin + len(group) - here + done, total)  # not every step concerns all of them

    with hold_several(farm, group, wait=LOCK_SECONDS if len(group) == 1 else 0) as held:
        return held.problems, act(replace(farm, step=step), held.records) if held.records else {}


@contextmanager
def hold(farm: Farm, id: str) -> Iterator[BuilderRecord]:
    """The builder's current record: another command may have changed it, or its agent the branch."""
    with hold_several(farm, [id], wait=LOCK_SECONDS) as held:
        for problem in held.problems.values():
            raise problem
        yield held.records[id]


@contextmanager
def lock_of(farm: Farm, id: str, *, wait: float = LOCK_SECONDS) -> Iterator[int]:
    """The builder's lock, even if it has no record (yet); children may inherit it."""
    busy = LockTaken(f"{id} is busy", why="Another af command is working on it.", hint="af status")
    with file_lock(farm.paths.builder_lock(id), wait=wait, inherit=True, busy=busy) as descriptor:
        yield descriptor
