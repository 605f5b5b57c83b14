"""Asks the fleet's machines how their builders are, all at once, so that none delays another.

For somebody at a terminal a machine gets one second, then its last answer is shown; another process waits for
the new one.
"""

from __future__ import annotations

import time
from collections.abc import Collection, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.disk import is_locked
from agent_farm.errors import AgentFarmError, LockTaken, NotFound, Overdue, TimedOut, Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Machine, Placed, Row, edit_book, read_book
from agent_farm.fleet.calling import Tell, call
from agent_farm.git.asking import side_by_side
from agent_farm.git.git_process import git_deadline
from agent_farm.git.other_machine import fetched_commit
from agent_farm.operations.fleet.making import is_being_made
from agent_farm.operations.fleet.rows_elsewhere import answer_of, row_of
from agent_farm.operations.fleet.work_elsewhere import (
    fetch_work,
    make_branch_again,
    push_bases,
    take_checkpoint,
)
from agent_farm.operations.status import Builders
from agent_farm.own_process import start_af

PATIENT_SECONDS = 15.0
QUICK_SECONDS = 1.0
_LONGEST_PAUSE = 900.0  # people without a server look by hand
_STEADY_PAUSE = 40.0  # the server never looks less often
_STORED_SECONDS = 10.0  # an unchanged answer is still written this often, for its age


class _Told(Struct, frozen=True):
    """`is_whole`: the machine had the current bases before it reported its builders."""

    rows: Mapping[str, Row]
    pushed: dict[str, str]
    is_whole: bool = True


def refresh(
    farm: Farm,
    hosts: Collection[str] | None = None,
    *,
    fresh: bool = False,
    seconds: float = PATIENT_SECONDS,
) -> Book:
    """The book with the machines' answers, or why one did not answer within `seconds`.

    With less than the usual patience, a machine that has not answered yet only counts as late.
    """
    book = read_book(farm)
    waited_for = {one.host for one in book.left if one.commit is None}
    asked = [
        host
        for host in book.machines
        if (book.on(host) or host in waited_for) and (hosts is None or host in hosts)
    ]
    questions = {host: partial(_look, farm, book, host, fresh, seconds) for host in asked}
    found = side_by_side(questions, workers=len(asked)) if asked else {}
    making = {id for id, placed in book.builders.items() if not placed.is_known and is_being_made(farm, id)}
    with edit_book(farm) as held:
        before = held[0]
        now = before
        for host, answer in found.items():
            if host in now.machines:
                now = _noted(now, book, host, answer, making, is_quick=seconds < PATIENT_SECONDS)
        held[0] = before if _as_before(before, now, asked) else now
    for id in before.removed.keys() & now.builders.keys() - now.removed.keys():
        with suppress(AgentFarmError):  # otherwise it comes with its work
            make_branch_again(farm, id, now.builders[id])
    return now


def refresh_quickly(farm: Farm, hosts: Collection[str] | None = None) -> Book:
    """Takes about a second; another process keeps asking machines that are late, for the next look."""
    book = refresh(farm, hosts, seconds=QUICK_SECONDS)
    late = [
        host
        for host, machine in book.machines.items()
        if machine.is_late and (hosts is None or host in hosts) and not is_being_asked(farm, host)
    ]
    if late:
        start_af(farm.root, "fleet", "look", *late)
    return book


def is_being_asked(farm: Farm, host: str) -> bool:
    return asking_lock(farm, host).exists() and is_locked(asking_lock(farm, host))


def asking_lock(farm: Farm, host: str) -> Path:
    """Held by the process that waits for a late machine."""
    return farm.paths.locks / f"fleet-asking-{host}.lock"


def _noted(
    book: Book,
    asked: Book,
    host: str,
    answer: _Told | AgentFarmError,
    making: Collection[str],
    *,
    is_quick: bool,
) -> Book:
    """The book with an answer, which says nothing about builders placed since `asked` was read."""
    machine, builders, removed = book.machines[host], dict(book.builders), dict(book.removed)
    if isinstance(answer, Overdue) and is_quick:
        machine = replace(machine, is_late=True)
    elif isinstance(answer, AgentFarmError):
        machine = replace(_missed(machine, time.time()), problem=answer.sentence, is_late=False)
    else:
        late, now = not answer.is_whole, time.time()
        machine = replace(machine, problem=None, seen_at=now, is_late=late, pushed=answer.pushed)
        machine = replace(machine, silent_since=None, misses=0)
        for id, placed in book.on(host).items():
            if id in answer.rows:
                builders[id] = replace(placed, row=answer.rows[id], is_known=True, gone=False)
                removed.pop(id, None)
            elif id in making or not _is_same_placing(asked.builders.get(id), placed):
                continue
            elif id in removed:  # it should have come back, but did not
                del builders[id]
            else:
                builders[id] = replace(placed, gone=True)
    return replace(book, machines={**book.machines, host: machine}, builders=builders, removed=removed)


def _is_same_placing(before: Placed | None, now: Placed) -> bool:
    return before is not None and (before.host, before.term, before.is_known) == (
        now.host,
        now.term,
        now.is_known,
    )


def _missed(machine: Machine, now: float) -> Machine:
    """Silence begins with the last answer, if another was asked for right after. In a longer pause nobody
    looked, and this machine may have been asleep or its clock set: then silence begins now."""
    since, misses = machine.silent_since, machine.misses
    if since is None and 0 <= now - machine.seen_at <= _STEADY_PAUSE:
        since = machine.seen_at
    elif since is None or not 0 <= now - machine.missed_at <= _LONGEST_PAUSE:
        since, misses = now, 0
    return replace(machine, silent_since=since, missed_at=now, misses=misses + 1)


def _as_before(before: Book, now: Book, asked: Collection[str]) -> bool:
    """Whether there is nothing to write, because only the time of the look has changed."""
    if any(now.machine(host).seen_at - before.machine(host).seen_at > _STORED_SECONDS
           for host in asked if host in now.machines):  # fmt: skip
        return False
    return _timeless(before) == _timeless(now)


def _timeless(book: Book) -> Book:
    machines: dict[str, Machine] = {id: replace(one, seen_at=0.0) for id, one in book.machines.items()}
    builders: dict[str, Placed] = {id: _without_time(one) for id, one in book.builders.items()}
    return replace(book, machines=machines, builders=builders)


def _without_time(placed: Placed) -> Placed:
    row = placed.row
    return replace(placed, row=replace(row, git=replace(row.git, at=0.0))) if row and row.git else placed


def _look(farm: Farm, book: Book, host: str, fresh: bool, seconds: float) -> _Told:
    """In a hurry everything together takes `seconds`, otherwise each question may."""
    placed, before = book.on(host), book.machine(host).pushed
    until, is_patient = time.monotonic() + seconds, seconds >= PATIENT_SECONDS

    def left() -> float:
        return seconds if is_patient else max(0.05, until - time.monotonic())

    def rows() -> dict[str, Row]:
        document = call(book, host, "status", {"fresh": fresh}, seconds=left())
        told = answer_of(Builders, document, host).builders
        return {one.id: row_of(one.id, placed[one.id], one) for one in told if one.id in placed}

    found = rows()
    try:
        with git_deadline(left()):
            pushed = push_bases(farm, book, host, wait=seconds if is_patient else 0)
        return _Told(found if pushed == before else rows(), pushed)
    except AgentFarmError as error:  # the machine's answer about its builders still counts
        is_late = isinstance(error, (Overdue, TimedOut, LockTaken)) and not is_patient
        return _Told(found, before, is_whole=not is_late)


def fetch_if_reachable(farm: Farm, ids: Collection[str], tell: Tell, *, quickly: bool = False) -> Book:
    """For verbs that use the work here if a machine is asleep; they report what is left out."""
    book = read_book(farm)
    hosts = {book.builders[id].host for id in ids}
    book = refresh_quickly(farm, hosts) if quickly else refresh(farm, hosts)
    for id in ids:
        _bring_home(farm, book, id, tell)
    return book


def fetch_all(farm: Farm, book: Book, ids: Collection[str], tell: Tell) -> list[str]:
    """The builders whose work is now here; a failure does not stop the others."""
    found = []
    for id in ids:
        try:
            _bring_home(farm, book, id, tell)
        except AgentFarmError as error:
            tell(f"{id} is left out: {error.sentence}")
        else:
            found.append(id)
    return found


def _bring_home(farm: Farm, book: Book, id: str, tell: Tell) -> None:
    placed = book.builder(id)
    machine = book.machine(placed.host)
    if machine.problem or machine.is_late:
        take_checkpoint(farm, id, placed)
        if machine.problem and fetched_commit(farm.repository, id) is None:
            raise Unreachable(f"Nothing of {id} has come home", why=machine.problem, hint=f"af status {id}")
        tell(f"{id} as last fetched: {machine.problem or f'{placed.host} has not answered yet'}")
        return
    if placed.gone:
        raise NotFound(f"{placed.host} has no builder {id}", hint=f"af prune {id}")
    if placed.row is None:
        raise NotFound(f"{placed.host} has not confirmed yet that {id} exists", hint=f"af status {id}")
    fetch_work(farm, book, id, if_new=True)
    git = placed.row.git
    left = (git.dirty or 0) + (git.untracked or 0) if git else 0
    if left:
        tell(f"{id} has {left} uncommitted file{'s' * (left != 1)} on {placed.host}, not included here")
    if git and git.branch != placed.row.record.branch:
        tell(f"{id} has {git.branch or 'a detached HEAD'} checked out on {placed.host}; this is its branch")
