"""What the landing queue shows at every door, and the message to a builder whose work came back."""

from __future__ import annotations

from msgspec import structs

from agent_farm.landing.train.landing_journal import Queue, Returned
from agent_farm.landing.train.line import Check, LandingLine, next_step, order_of, with_green
from agent_farm.launch import as_command
from agent_farm.operations.operation import Answer

_SHORT = 300  # characters of a reason on a command line


class InQueue(Answer):
    """`risk`: the estimated chance that its check fails. `held`: it passed, and waits for an older one."""

    id: str
    commit: str
    risk: float
    held: bool
    overtaken: int


class HasLanded(Answer):
    """`commit` is what the branch was moved to, `tree` is what passed the check."""

    id: str
    commit: str
    tree: str


class CameBack(Answer):
    """`kind`: conflict, red or refused. `told`: how its builder was told, null until then."""

    id: str
    kind: str
    what: str
    evidence: tuple[str, ...]
    log: str | None
    told: str | None
    hint: str | None = None


class LandingQueue(Answer):
    """The queue as it stands; `state` is none, running, stopped (`af land --continue` continues it) or done.

    `problem` says why it stopped, if that is known.

    `waiting` is in the order of the checks. `groups`: what is checked next, each group if the ones before it
    pass. `present`: the branch had all of it already. `checks` does not count `repeats`: a red check is run
    once more before anybody is blamed. `flaky`: groups whose check was red, and green when it was run again.
    """

    state: str
    into: str | None
    waiting: tuple[InQueue, ...] = ()
    groups: tuple[tuple[str, ...], ...] = ()
    landed: tuple[HasLanded, ...] = ()
    returned: tuple[CameBack, ...] = ()
    present: tuple[str, ...] = ()
    flaky: tuple[tuple[str, ...], ...] = ()
    checks: int = 0
    repeats: int = 0
    notes: tuple[str, ...] = ()
    problem: tuple[str, ...] = ()

    @property
    def exit_code(self) -> int:
        return 1 if self.returned else 0


def shown(queue: Queue, state: str) -> LandingQueue:
    line = queue.line
    held = {one.id for group in line.held for one in group}
    rows = [*(one for group in line.held for one in group), *order_of(line)]
    return LandingQueue(
        state=state,
        into=queue.into,
        waiting=tuple(
            InQueue(one.id, queue.entries[one.id].tip, round(one.risk, 3), one.id in held, one.overtaken)
            for one in rows
        ),
        groups=_groups(line),
        landed=tuple(HasLanded(one.id, one.commit, one.tree) for one in queue.landed),
        returned=tuple(came_back(one) for one in queue.returned),
        present=queue.present,
        flaky=line.flaky,
        checks=queue.checks,
        repeats=queue.repeats,
        problem=queue.problem,
    )


def _groups(line: LandingLine) -> tuple[tuple[str, ...], ...]:
    found = []
    line = structs.replace(line, held=())
    while isinstance(step := next_step(line), Check) and step.group:
        found.append(step.group)
        line = structs.replace(with_green(line, step.group), held=())
    return tuple(found)


def came_back(one: Returned) -> CameBack:
    hint = None
    if one.told is not None and one.told.startswith("held"):
        hint = as_command(
            "af", "resume", one.id, "--continue", f"Your work did not land: {one.what[:_SHORT]}"
        )
    elif one.told is not None and one.told.startswith("failed"):
        hint = as_command("af", "send", one.id, f"Your work did not land: {one.what[:_SHORT]}")
    return CameBack(one.id, one.kind, one.what, one.evidence, one.log, one.told, hint)


def message_of(queue: Queue, one: Returned) -> str:
    into = queue.into
    lines = [f"Your work did not land on {into}. {one.what}."]
    if one.kind == "conflict":
        lines += ["These files conflict:", *(f"  {file}" for file in one.evidence)]
    elif one.evidence:
        lines += ["The end of what it printed:", *(f"  {line}" for line in one.evidence)]
    if one.log:
        lines.append(f"The whole output is in {one.log}")
    how = (
        f"Rebase your branch onto {into}" if queue.strategy == "rebase" else f"Merge {into} into your branch"
    )
    ends = {
        "conflict": "resolve the conflicts",
        "red": "make that pass",
        "refused": "fix that",
    }[one.kind]
    lines.append(f"{how}, {ends}, and commit. Your work lands once it is put into the queue again.")
    text = "\n".join(lines)
    return "".join(char if char.isprintable() or char in "\t\n" else "?" for char in text)
