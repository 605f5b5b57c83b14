"""`fleet_checkpoint`: fetch what is new in the work of builders on other machines.

The farm's server does this every 15 to 30 s while builders are elsewhere. Each machine is asked once, and one
fetch brings what has changed. A new checkpoint is checked before it replaces the old one.
"""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from functools import partial

from msgspec.structs import replace

from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken, NotFound, Unreachable
from agent_farm.farm.about_checkpoint import about_of
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, LastCheckpoint, Refused, edit_book, read_book
from agent_farm.fleet.calling import call
from agent_farm.git.asking import side_by_side
from agent_farm.git.checkpoint_making import checkpoint_ref
from agent_farm.git.checkpoint_reading import Checkpoint, NoCheckpoint, read_checkpoints
from agent_farm.git.checkpoints import coming_ref, drop, keep, kept_ref, left_ref
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import GitError
from agent_farm.git.other_machine import NotWhole, TooMuch
from agent_farm.operations.declare import in_parts
from agent_farm.operations.fleet.pack_calls import fetch_packs
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.rows_elsewhere import answer_of
from agent_farm.operations.fleet.work_elsewhere import most_fetched
from agent_farm.operations.for_home.copied_builders import Copies
from agent_farm.operations.operation import (
    TERMINAL_ALONE,
    Answer,
    Context,
    Failure,
    Nothing,
    OfSeveral,
    gathered,
)

_SECONDS = 120.0
_KEPT_SECONDS = 7 * 86_400.0

Came = dict[str, str | AgentFarmError]


class AtHome(Answer):
    """A builder whose last checkpoint is up to date; `new`: something was fetched."""

    id: str
    new: bool


class Checkpointed(OfSeveral):
    kept: tuple[AtHome, ...]


@in_parts(
    "Fetch checkpoints of the builders on other machines: their work, committed or not",
    gathered(Checkpointed, kept=AtHome, failed=Failure),
    effect="changes",
    tolerant=True,
    repeats=True,
    doors=TERMINAL_ALONE,  # the farm's server does it every 30 s
    details="A checkpoint has a builder's files, journal and conversation; only what is new is fetched."
    " The farm's server does this every 15 to 30 s while builders are elsewhere.",
)
def fleet_checkpoint(context: Context, request: Nothing) -> Iterator[AtHome | Failure]:
    book = refresh(context.farm)
    before = {id: one.checkpoint.commit for id, one in book.builders.items() if one.checkpoint}
    for id, one in bring_home(context.farm, book).items():
        if isinstance(one, str):
            yield AtHome(id, one != before.get(id))
        else:
            what = f"No new checkpoint of {id} could be fetched; the last one stays"
            yield Failure.of(id, AgentFarmError(what, why=one.sentence, hint=one.hint))


def bring_home(farm: Farm, book: Book, only: str | None = None, *, backs_off: bool = False) -> Came:
    """Each builder's current checkpoint, or why there is no new one; `only` limits it to one machine.

    With `backs_off`, builders whose checkpoint was refused recently are skipped.
    """
    hosts = {
        host for host, machine in book.machines.items() if machine.problem is None and only in (None, host)
    }
    work = {host: ids for host in sorted(hosts) if (ids := _wanted(book, host))}
    answers = side_by_side(
        {host: partial(_from_machine, farm, book, host, ids, backs_off) for host, ids in work.items()}
    )
    came: Came = {}
    for host, answer in answers.items():
        came |= dict.fromkeys(work[host], answer) if isinstance(answer, AgentFarmError) else answer
    return {id: one for id, one in came.items() if not isinstance(one, LockTaken)}


def _wanted(book: Book, host: str) -> list[str]:
    here = [id for id, placed in book.on(host).items() if placed.is_known and not placed.gone]
    return [*here, *(one.id for one in book.left if one.host == host and one.commit is None)]


def _from_machine(farm: Farm, book: Book, host: str, ids: list[str], backs_off: bool = False) -> Came:
    """Only for those still there: another process may have placed some elsewhere in the meantime."""
    with checkpoint_lock(farm, host):
        book, at = read_book(farm), time.time()
        wanted = _wanted(book, host)
        ids = [id for id in ids if id in wanted]
        if backs_off:
            waits = {ref for ref, one in book.refused.items() if not one.is_over(at)}
            ids = [id for id, ref in _destinations(book, host, ids).items() if ref not in waits]
        if not ids:
            return {}
        answer = answer_of(Copies, call(book, host, "checkpoint", {"ids": ids}, seconds=_SECONDS), host)
        return _take(farm, book, host, ids, answer, at)


def checkpoint_lock(farm: Farm, host: str) -> AbstractContextManager[int]:
    return file_lock(farm.paths.locks / f"fleet-checkpoint-{host}.lock", wait=_SECONDS)


def take_over(farm: Farm, book: Book, host: str, id: str, *, interrupt: bool) -> str:
    """End the builder there; returns the commit of all it had. Called under the lock."""
    at, asked = time.time(), {"id": id, "interrupt": interrupt}
    answer = answer_of(Copies, call(book, host, "hand_over", asked, seconds=_SECONDS), host)
    found = _take(farm, book, host, [id], answer, at)[id]
    if isinstance(found, AgentFarmError):
        raise found
    return found


def _take(farm: Farm, book: Book, host: str, ids: list[str], answer: Copies, at: float) -> Came:
    made = {copy.id: copy.commit for copy in answer.made if copy.id in ids}
    came: Came = {one.id: _not_made(host, one) for one in answer.failed if one.id in ids}
    came |= {id: _none(host, id) for id in ids if id not in made and id not in came}
    refs = _destinations(book, host, ids)
    here = resolve_commits(farm.repository, refs.values()) if refs else {}
    new = {id: commit for id, commit in made.items() if here[refs[id]] != commit}
    came |= {id: commit for id, commit in made.items() if id not in new}
    came |= _fetch(farm, book, host, new, refs)
    with edit_book(farm) as held:
        book = _with_what_came(farm, held[0], host, came, at)
        said = {id: one for id, one in came.items() if id in made or isinstance(one, NotWhole)}
        held[0] = _with_refused(book, {refs[id]: one for id, one in said.items()}, at)
    return came


def _none(host: str, id: str) -> AgentFarmError:
    return Unreachable(f"{host} sent no checkpoint of {id}")


def _not_made(host: str, failure: Failure) -> AgentFarmError:
    """git there may lack objects, and would look for them at every call, perhaps at a remote."""
    error = failure.error
    if error.code != GitError.code:
        return error
    return NotWhole(f"{host} cannot make a checkpoint of {failure.id}", why=error.sentence)


def _destinations(book: Book, host: str, ids: Iterable[str]) -> dict[str, str]:
    left = {one.id: one.term for one in book.left if one.host == host}
    placed = book.on(host)
    return {id: kept_ref(id) if id in placed else left_ref(id, left[id]) for id in ids}


def _fetch(farm: Farm, book: Book, host: str, new: Mapping[str, str], refs: Mapping[str, str]) -> Came:
    """Fetch all at once; if that fails, each one alone."""
    if not new:
        return {}
    try:
        coming = {checkpoint_ref(id): coming_ref(refs[id]) for id in new}
        fetch_packs(farm, book, host, coming, most_bytes=most_fetched(farm))
    except AgentFarmError as error:
        if isinstance(error, Unreachable) or len(new) == 1:
            drop(farm.repository, *(coming_ref(refs[id]) for id in new))
            return dict.fromkeys(new, error)
        found: Came = {}
        for id, commit in new.items():
            found |= _fetch(farm, book, host, {id: commit}, refs)
        return found
    return _look_at(farm, host, {id: refs[id] for id in new})


def _look_at(farm: Farm, host: str, refs: Mapping[str, str]) -> Came:
    """Check fetched checkpoints. A bad one, or one of a builder placed elsewhere since, is dropped, and the
    last one stays."""
    coming = {id: coming_ref(ref) for id, ref in refs.items()}
    read = read_checkpoints(farm.repository, list(coming.values()), most_bytes=most_fetched(farm))
    came: Came = {id: _believed(read[coming[id]], id) for id in refs}
    with edit_book(farm) as held:
        gone = [id for id, ref in refs.items() if ref == kept_ref(id) and id not in held[0].on(host)]
        came |= {id: NotFound(f"{id} is not on {host} any more", hint=f"af status {id}") for id in gone}
        came |= _keep(
            farm, {id: (coming[id], refs[id], one) for id, one in came.items() if isinstance(one, str)}
        )
    drop(farm.repository, *(coming[id] for id, one in came.items() if not isinstance(one, str)))
    return came


def _keep(farm: Farm, good: Mapping[str, tuple[str, str, str]]) -> Came:
    """Keep all at once; if git refuses (because of a lock that a killed git left, say), each one alone."""
    try:
        if good:
            keep(farm.repository, {come: (ref, commit) for come, ref, commit in good.values()})
    except GitError as error:
        if len(good) == 1:
            return dict.fromkeys(good, error)
        return {id: found for id, one in good.items() for found in _keep(farm, {id: one}).values()}
    return {id: commit for id, (_, _, commit) in good.items()}


def _believed(found: Checkpoint | NoCheckpoint, id: str) -> str | AgentFarmError:
    try:
        if isinstance(found, NoCheckpoint):
            return found
        about_of(found, id)
    except NoCheckpoint as error:
        return error
    return found.commit


def _with_what_came(farm: Farm, book: Book, host: str, came: Came, at: float) -> Book:
    builders = dict(book.builders)
    for id, placed in book.on(host).items():
        one = came.get(id)
        if isinstance(one, str):
            builders[id] = replace(placed, checkpoint=LastCheckpoint(one, at), problem=None)
        elif one is not None:
            builders[id] = replace(placed, problem=one.sentence)
    refs = {one: left_ref(one.id, one.term) for one in book.left if one.host == host and one.commit is None}
    home = resolve_commits(farm.repository, refs.values()) if refs else {}
    left = tuple(
        replace(one, commit=home[refs[one]], at=at) if one in refs and home[refs[one]] else one
        for one in book.left
    )
    return replace(book, builders=builders, left=left)


def _with_refused(book: Book, came: Mapping[str, str | AgentFarmError], at: float) -> Book:
    before = book.refused
    refused = {ref: one for ref, one in before.items() if at - one.at < _KEPT_SECONDS and ref not in came}
    for ref, one in came.items():
        if isinstance(one, (NoCheckpoint, NotWhole, TooMuch)):
            times = before[ref].times + 1 if ref in before else 1
            refused[ref] = Refused(times, at)
    return replace(book, refused=refused)
