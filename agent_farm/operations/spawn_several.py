"""Several builders in one spawn: a list of tasks, copies of each, and runtimes in turn."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from itertools import cycle, pairwise
from threading import Event
from typing import Any, TypeVar

import msgspec
from msgspec.structs import replace

from agent_farm.builders.ids import given_name
from agent_farm.errors import AgentFarmError, ConsentNeeded, UsageError
from agent_farm.farm.runtime_start import STARTS_AT_ONCE
from agent_farm.git.asking import as_asked
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn_plan import Plan, preflight
from agent_farm.operations.spawn_request import Spawn, choose_mode
from agent_farm.operations.spawn_work import find_work
from agent_farm.pace import Step

A = TypeVar("A")
P = TypeVar("P")

_MOST = 1000
_SHOWN = 20
_FENCE = re.compile(r"\s*(```|~~~)")
# Fields that are given once for all of them.
_COMMON = frozenset({"tasks", "copies", "runtimes", "on", "dry_run", "yes"})


def expand(asked: Spawn) -> list[Spawn]:
    """One request for each builder, in the order in which they start."""
    if asked.runtimes and asked.runtime is not None:
        raise UsageError("Flags are mutually exclusive: --runtime, --runtimes", hint="af spawn --help")
    alone = replace(asked, tasks=None, copies=1, runtimes=())
    each = [alone] if asked.tasks is None else [_of(alone, fields) for fields in read_tasks(asked.tasks)]
    copies = asked.copies if asked.copies > 1 or not asked.runtimes else len(asked.runtimes)
    found = [one for one in each for _ in range(copies)]
    if asked.runtimes:
        found = [replace(one, runtime=name) for one, name in zip(found, cycle(asked.runtimes), strict=False)]
    if len(found) > _MOST:
        raise UsageError(f"{len(found)} builders at once", why=f"The limit is {_MOST}.")
    return _named_apart(found)


class Turn:
    """Keeps the order of several made side by side: entering waits until the one before passes it on.

    `step` is what it tells of its own steps to.
    """

    def __init__(self, come: Event, next: Event, step: Step) -> None:
        self._come, self._next = come, next
        self.step = step

    def __enter__(self) -> None:
        self._come.wait()

    def __exit__(self, *error: object) -> None:
        self.pass_on()

    def pass_on(self) -> None:
        self._next.set()


def _turns(count: int, step: Step) -> list[Turn]:
    """The checkout counts as all of a builder: what comes after it takes no time."""
    come, shares = [Event() for _ in range(count + 1)], [0.0] * count
    come[0].set()

    def one_step(number: int, what: str, done: float, total: int) -> None:
        shares[number] = done / total if total else 0.0
        step("Spawning", sum(shares), count)

    return [Turn(mine, next, partial(one_step, number)) for number, (mine, next) in enumerate(pairwise(come))]


def carry_out_all(
    carry_out: Callable[[Plan, Turn], A], plans: Sequence[Plan], step: Step
) -> Iterator[tuple[str, A | AgentFarmError]]:
    """A few at a time; each is recorded in its turn. `step` is told how many there are."""

    def in_turn(plan: Plan, turn: Turn) -> A:
        try:
            return carry_out(plan, turn)
        finally:
            turn.pass_on()  # even if this one failed before its turn came
            turn.step("", 1, 1)

    make = {
        f"task {number}": partial(in_turn, plan, turn)
        for number, (plan, turn) in enumerate(zip(plans, _turns(len(plans), step), strict=True), 1)
    }
    return as_asked(make, workers=STARTS_AT_ONCE)


def preflight_all(context: Context, asked: Spawn) -> list[Plan]:
    """What is found out for one holds for the next that is the same, or differs in its text or name alone."""

    def plan(order: Spawn, last: Plan | None) -> Plan:
        if last is None or not _differs_in_text_alone(last.order, order):
            return preflight(context, order)
        return last if order == last.order else _with_text(context, last, order)

    return all_possible(expand(asked), plan)


def all_possible(orders: Sequence[Spawn], plan: Callable[[Spawn, P | None], P]) -> list[P]:
    """The plan for each, or a UsageError that lists what is wrong; `plan` also gets the previous plan.

    What needs consent is asked for first, as for one: each door has its own way to give it.
    """
    plans, wrong = list[P](), list[str]()
    for number, order in enumerate(orders, 1):
        try:
            plans.append(plan(order, plans[-1] if plans else None))
        except ConsentNeeded:
            raise
        except AgentFarmError as error:
            wrong.append(f"task {number}: {error.sentence}")
    if wrong:
        more = [f"and {len(wrong) - _SHOWN} more"] if len(wrong) > _SHOWN else []
        raise UsageError(
            f"Nothing was spawned: {len(wrong)} of {len(orders)} tasks are not possible",
            evidence=[*wrong[:_SHOWN], *more],
            hint="af spawn --help",
        )
    return plans


def _differs_in_text_alone(one: Spawn, other: Spawn) -> bool:
    is_same_mode = (one.task is None) == (other.task is None)
    return is_same_mode and replace(one, task="", name=None) == replace(other, task="", name=None)


def _with_text(context: Context, plan: Plan, order: Spawn) -> Plan:
    mode, issue = choose_mode(order), plan.work.issue_read
    work, start = find_work(context.farm, mode, plan.start, name=order.name, issue=issue)
    return replace(plan, order=order, work=work, start=start)


def read_tasks(text: str) -> list[dict[str, Any]]:
    """Objects, one on each line; else the open items of a check list; else paragraphs."""
    if "\0" in text:
        raise UsageError("The tasks contain a NUL byte", why="It cannot be passed to a program.")
    from agent_farm.builders.check_list import is_check_list, numbered_items  # few spawns are given a list

    lines = text.splitlines()
    if text.lstrip().startswith("{"):
        found = [_object(number, line) for number, line in enumerate(lines, 1) if line.strip()]
    elif is_check_list(text):
        found = [{"task": item.text} for item in numbered_items(text) if not item.is_done]
    else:
        found = [{"task": one} for one in _paragraphs(lines)]
    if not found:
        raise UsageError("It contains no task", why="A check list needs an open item: - [ ] Fix the login")
    return found


def _object(number: int, line: str) -> dict[str, Any]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise UsageError(f"Line {number} of the tasks is not valid JSON", why=str(error)) from None
    if not isinstance(value, dict):
        raise UsageError(f"Line {number} of the tasks is not a JSON object", why=f"It is {line.strip()[:60]}")
    return value


def _paragraphs(lines: Sequence[str]) -> Iterator[str]:
    """Text between empty lines; empty lines inside a code fence do not count."""
    task, fence = list[str](), ""
    for line in [*lines, ""]:
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        if line.strip() or (fence and task):
            task.append(line)
        elif task:
            yield "\n".join(task)
            task = []
    if task:
        yield "\n".join(task).rstrip()


def _of(common: Spawn, fields: dict[str, Any]) -> Spawn:
    if said := sorted(_COMMON & fields.keys()):
        raise UsageError(f"{said[0]} applies to all tasks, not to one", hint="af spawn --help")
    try:
        own = msgspec.convert(fields, Spawn)
    except msgspec.ValidationError as error:
        what = f"Not a valid task: {json.dumps(fields)[:80]}"
        raise UsageError(what, why=str(error)) from None
    return replace(common, **{name: getattr(own, name) for name in fields})


def _named_apart(orders: Sequence[Spawn]) -> list[Spawn]:
    """Three builders with `--name fix` get fix-1, fix-2 and fix-3."""
    names = [one.name for one in orders]
    counts = dict.fromkeys(names, 0)
    found = []
    for one in orders:
        if one.name is None or names.count(one.name) == 1:
            found.append(one)
            continue
        counts[one.name] += 1
        found.append(replace(one, name=given_name(f"{one.name}-{counts[one.name]}").id))
    return found
