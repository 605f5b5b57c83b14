"""What the machines of the fleet say of this farm's builders, and their work as it is there.

A machine is believed less than this one: of what it says, only what has the form of a builder that was put
there is kept.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.disk import file_lock, is_locked
from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.farm.git_state import GitState
from agent_farm.farm.listing import Builder
from agent_farm.fleet.book import Book, Machine, Placed, Row, edit_book, read_book
from agent_farm.fleet.calling import Tell, call, line_to
from agent_farm.git.asking import side_by_side
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.other_machine import fetch_branch, fetched_commit, move_branch, push_commits
from agent_farm.operations.operation import Answer
from agent_farm.operations.shown import BuilderShown
from agent_farm.operations.status import Builders
from agent_farm.printable import printable

_STATUS_SECONDS = 15.0
_LAST_YEAR = 253_402_300_800
_REFS = "refs/remotes/home/"

A = TypeVar("A", bound=Answer)


def answer_of(kind: type[A], document: Mapping[str, Any], host: str) -> A:
    """What a machine answered, whole and of the right form, without a character that moves a cursor."""
    try:
        given = {name: value for name, value in document.items() if name != "version"}
        return msgspec.convert(_clean(given), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise Unreachable(f"{host} answered what is no answer", why=printable(str(error))[:300]) from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(one) for name, one in value.items()}
    return value


def row_of(id: str, placed: Placed, shown: BuilderShown) -> Row:
    """Unreachable where it cannot be the builder that was put there."""
    try:
        if shown.id != id:
            raise ValueError(f"It is told of as {shown.id!r:.60}.")
        return _row(placed, shown)
    except (msgspec.ValidationError, ValueError) as error:
        what = f"{placed.host} tells of {id} what cannot be"
        raise Unreachable(what, why=printable(str(error))[:300]) from error


def _row(placed: Placed, shown: BuilderShown) -> Row:
    fields = {name: getattr(shown, name) for name in BuilderRecord.__struct_fields__}
    own = {"base": placed.base, "base_commit": placed.base_commit, "after": None, "stack": None}
    record = msgspec.convert(msgspec.to_builtins({**fields, **own}), BuilderRecord)
    now = time.time()
    status = Status(**{**asdict(shown.status), "at": _moment(shown.status.at)})
    git = None
    if shown.git is not None:
        git = GitState(**{**asdict(shown.git), "at": _moment(shown.git.at) or now})
    return Row(record, status, git, shown.usage)


def _moment(at: float | None) -> float | None:
    return at if at is not None and 0 <= at < _LAST_YEAR else None


def refresh(farm: Farm, hosts: Collection[str] | None = None, *, fresh: bool = False) -> Book:
    """Ask each machine once, all at the same time; the book with what they said, or why they did not."""
    book = read_book(farm)
    asked = [host for host in book.machines if book.on(host) and (hosts is None or host in hosts)]
    found = side_by_side({host: partial(_look, farm, book, host, fresh) for host in asked})
    making = {id for id, placed in book.builders.items() if not placed.is_known and _is_made_now(farm, id)}
    with edit_book(farm) as held:
        book = held[0]
        machines, builders = dict(book.machines), dict(book.builders)
        for host, answer in found.items():
            machine = machines.get(host)
            if machine is None:
                continue
            now = time.time()
            if isinstance(answer, AgentFarmError):
                machines[host] = replace(machine, problem=answer.sentence, asked_at=now)
                continue
            rows, pushed = answer
            machines[host] = replace(machine, problem=None, asked_at=now, pushed=pushed)
            for id, placed in book.on(host).items():
                if id in rows:
                    builders[id] = replace(placed, row=rows[id], is_known=True, gone=False)
                elif id not in making:
                    builders[id] = replace(placed, gone=True)
        held[0] = replace(book, machines=machines, builders=builders)
    return held[0]


def _is_made_now(farm: Farm, id: str) -> bool:
    with suppress(AgentFarmError):
        return farm.paths.builder_lock(id).exists() and is_locked(farm.paths.builder_lock(id))
    return True


def _look(farm: Farm, book: Book, host: str, fresh: bool) -> tuple[dict[str, Row], dict[str, str]]:
    placed = book.on(host)
    document = call(book, host, "status", {"fresh": fresh}, seconds=_STATUS_SECONDS)
    pushed = push_bases(farm, book, host)
    if pushed != book.machine(host).pushed:  # then more may have landed than it knew
        document = call(book, host, "status", {"fresh": fresh}, seconds=_STATUS_SECONDS)
    rows = {}
    for shown in answer_of(Builders, document, host).builders:
        if shown.id in placed:
            rows[shown.id] = row_of(shown.id, placed[shown.id], shown)
    return rows, pushed


def push(farm: Farm, book: Book, host: str, refs: Mapping[str, str]) -> None:
    """One at a time: git over there refuses the second of two that move the same ref."""
    with file_lock(farm.paths.locks / f"fleet-{host}.lock"):
        push_commits(farm.repository, line_to(book.machine(host)), refs)


def push_bases(farm: Farm, book: Book, host: str) -> dict[str, str]:
    """What builders there are to land on, as it is here by now: so that it is known there what has landed."""
    machine = book.machine(host)
    bases = {placed.base for placed in book.on(host).values()}
    tips = resolve_commits(farm.repository, {f"refs/heads/{base}" for base in bases}) if bases else {}
    wanted = {base: tip for base in bases if (tip := tips.get(f"refs/heads/{base}"))}
    if new := {base: tip for base, tip in wanted.items() if machine.pushed.get(base) != tip}:
        push(farm, book, host, {f"{_REFS}{base}": tip for base, tip in new.items()})
    return {**machine.pushed, **wanted}


def fetch_work(farm: Farm, book: Book, id: str) -> None:
    """The builder's branch here is where it is there; refused where somebody else has moved it here."""
    placed = book.builders[id]
    theirs = placed.row.record.branch if placed.row else placed.branch
    before = fetched_commit(farm.repository, id)
    commit = fetch_branch(farm.repository, line_to(book.machine(placed.host)), id, theirs)
    move_branch(farm.repository, placed.branch, commit, before or placed.base_commit)


def fetch_if_reachable(farm: Farm, ids: Collection[str], tell: Tell) -> Book:
    """For what goes on with what is here where a machine is asleep; what is left out is told of."""
    book = read_book(farm)
    book = refresh(farm, {book.builders[id].host for id in ids})
    for id in ids:
        placed = book.builders[id]
        if problem := book.machine(placed.host).problem:
            tell(f"{id} as it was fetched last: {problem}")
            continue
        fetch_work(farm, book, id)
        git = placed.row.git if placed.row else None
        left = (git.dirty or 0) + (git.untracked or 0) if git else 0
        if left:
            tell(f"{id} has {left} uncommitted file{'s' * (left != 1)} on {placed.host}, not part of this")
        if git and git.branch != (placed.row.record.branch if placed.row else None):
            tell(
                f"{id} has {git.branch or 'a detached HEAD'} checked out on {placed.host}; this is its branch"
            )
    return book


def shown_rows(farm: Farm, book: Book, ids: Collection[str] | None = None) -> tuple[Builder, ...]:
    """Builders elsewhere as `af status` shows them; what a machine could not be asked is not gone."""
    chosen = book.builders if ids is None else {id: book.builders[id] for id in ids}
    return tuple(_shown(farm, id, placed, book.machine(placed.host)) for id, placed in chosen.items())


def _shown(farm: Farm, id: str, placed: Placed, machine: Machine) -> Builder:
    row = placed.row
    record = row.record if row else record_here(farm, id, placed)
    status = row.status if row else Status("unknown", "process")
    if machine.problem:
        known = f"; it was {status.state} when it was asked last" if row else ""
        status = replace(status, state="unknown", source="process", reason=f"{machine.problem}{known}")
    elif placed.gone:
        why = f"{placed.host} has no such builder; af prune {id} takes it off the list"
        status = Status("failed", "process", reason=why)
    elif row is None:
        status = replace(status, reason=f"{placed.host} has not said yet that it is made")
    usage = row.usage if row else None
    return Builder(record, status, row.git if row else None, usage, host=placed.host)


def record_here(farm: Farm, id: str, placed: Placed) -> BuilderRecord:
    """It as one that is stopped here and has left nothing but its branch."""
    here: dict[str, Any] = {
        "branch": placed.branch,
        "worktree": str(farm.paths.worktree(id)),
        "session": farm.paths.session(id),
        "prompt_file": None,
        "role": None,
        "source": None,
        "ports": (),
        "state": "stopped",
        "reason": f"it is on {placed.host}",
        "socket": "/",
        "subdirectory": "",
        "ephemeral": False,
    }
    if placed.row:
        return replace(placed.row.record, **here)
    return BuilderRecord(
        **here,
        id=id,
        type="task",
        runtime="unknown",
        model=None,
        base=placed.base,
        base_commit=placed.base_commit,
        task_text=placed.title,
        protocol_name=None,
        protocol_args=None,
        spec=None,
        files=(),
        conversation_id=None,
        created_at=placed.created_at,
        run="0" * 12,
        permissions="edit",
        new_branch=True,
    )
