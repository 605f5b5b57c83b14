"""`spawn --on HOST`: reserves the builder here, sends the commits, and has it made there under the same id.

A builder's machine is recorded before anything is sent. A refusal by the machine leaves nothing here; after a
lost connection the record stays, and the next look finds out whether the builder exists.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from datetime import UTC, datetime
from functools import partial

import msgspec
from msgspec import structs

from agent_farm.builders.ids import Name, first_free
from agent_farm.builders.record import TASK_TEXT_KEPT
from agent_farm.consent import require_consent
from agent_farm.errors import AgentFarmError, Unreachable, UsageError, as_farm_error
from agent_farm.farm.base_commit import Start
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Placed, edit_book, next_term, read_book
from agent_farm.fleet.calling import release_slot
from agent_farm.git.asking import as_asked
from agent_farm.git.checkpoints import drop
from agent_farm.git.ignoring import keep_apart
from agent_farm.git.other_machine import drop_branch, fetched_ref, make_branch, note_fetched
from agent_farm.operations.fleet.ask_machines import keys_of
from agent_farm.operations.fleet.held_slots import FLEET, hold_slot, names_lock
from agent_farm.operations.fleet.making import being_made
from agent_farm.operations.fleet.placings import AT_ONCE, Placings
from agent_farm.operations.fleet.rows_elsewhere import answer_of, row_of
from agent_farm.operations.fleet.wanted_elsewhere import Wanted, as_told, want
from agent_farm.operations.fleet.work_elsewhere import base_there, ref_there
from agent_farm.operations.for_home.home_checkout import NoCommit
from agent_farm.operations.for_home.placed_builders import Placement
from agent_farm.operations.operation import Context, Failure
from agent_farm.operations.spawn import OneOfSeveral, Part, Spawned
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_several import all_possible, expand
from agent_farm.operations.spawn_work import Work
from agent_farm.server.launching import ensure_server

LOCAL = "local"


class _MayBeThere(Unreachable):
    """The machine was asked to make it, and what came of that is unknown."""

    @classmethod
    def of(cls, error: Unreachable, id: str, host: str) -> _MayBeThere:
        evidence = (*error.evidence, f"{id} stays on record until {host} can be asked")
        return cls(error.what, why=error.why, evidence=evidence, hint=f"af status {id}")


class _Interrupted(KeyboardInterrupt):
    """Interrupted after the machine was asked to make it."""


def spawn_there(context: Context, order: Spawn, host: str) -> Iterator[Part]:
    """Each of several is checked as far as possible here before the first is made."""
    farm = context.farm
    if host != FLEET and read_book(farm).cluster is None:
        read_book(farm).machine(host)
    require_consent(farm.root, farm.settings.requests(["env.pass"]), yes=order.yes, ask=context.ask)
    orders = expand(order) if order.is_several else [order]
    plan = partial(want, context)
    wanted = all_possible(orders, plan) if order.is_several else [plan(order, None)]
    for note in dict.fromkeys(note for one in wanted for note in one.start.notes):
        context.tell(note)
    keep_apart(farm.repository)
    spawn = partial(_spawn, context, Placings(context), host)
    if not order.is_several:
        yield spawn(wanted[0])
    else:
        make = {f"task {n}": partial(spawn, one) for n, one in enumerate(wanted, 1)}
        for id, found in as_asked(make, workers=AT_ONCE):
            yield Failure.of(id, found) if isinstance(found, AgentFarmError) else OneOfSeveral(found)
    if not order.dry_run:
        have_it_kept(farm)


def _spawn(context: Context, placings: Placings, host: str, wanted: Wanted) -> Spawned:
    farm, order, work, start = context.farm, wanted.order, wanted.work, wanted.start
    runtime = order.runtime or farm.settings.text("spawn.runtime")
    with placings.at_work(), _reserved(farm, host, wanted, runtime) as (id, placed):
        base = base_there(farm, start.base)
        refs, is_known = {ref_there(id): start.tip, **base}, _is_there(farm, placed.host, start, base)
        asked = Placement(
            id,
            placed.term,
            placed.branch,
            start.tip,
            start.base if base else None,
            start.base_commit,
            as_told(farm, order),
            work.issue_read,
            wanted.role,
        )
        with _may_be_there(context, id, placed.host):
            ask = partial(_ask, context, placings, placed.host, asked, runtime)
            try:
                answer = ask({} if is_known else refs)
            except AgentFarmError as error:
                if error.code != NoCommit.code or not is_known:
                    raise
                answer = ask(refs)  # the machine's disk was replaced since
            if answer.builder is None:
                return answer
            row = row_of(id, placed, answer.builder)
            try:
                _note_made(farm, id, structs.replace(placed, is_known=True, row=row), start, base)
            except (AgentFarmError, OSError) as error:  # it runs, and its record says that it may be there
                what, why = f"{id} is on {placed.host}, but the record failed", as_farm_error(error).sentence
                raise Unreachable(what, why=why) from error
    return structs.replace(answer, builder=structs.replace(answer.builder, host=placed.host))


@contextmanager
def _may_be_there(context: Context, id: str, host: str) -> Iterator[None]:
    try:
        yield
    except Unreachable as error:
        raise _MayBeThere.of(error, id, host) from error
    except KeyboardInterrupt as error:
        context.tell(f"{id} stays on record until {host} can be asked; af status {id}")
        raise _Interrupted from error


def _note_made(farm: Farm, id: str, placed: Placed, start: Start, base: Mapping[str, str]) -> None:
    """Record the builder, and what its machine now has."""
    with edit_book(farm) as held:
        machine = held[0].machine(placed.host)
        pushed = {**machine.pushed, **({start.base: next(iter(base.values()))} if base else {})}
        held[0] = held[0].with_machine(placed.host, structs.replace(machine, pushed=pushed))
        held[0] = held[0].with_builder(id, placed)


def _is_there(farm: Farm, host: str, start: Start, base: Mapping[str, str]) -> bool:
    """Whether nothing has to be sent, as far as is known: the builder starts from a base sent earlier."""
    known = read_book(farm).machine(host).pushed
    return start.tip in known.values() and all(known.get(start.base) == commit for commit in base.values())


def have_it_kept(farm: Farm) -> None:
    """Start the farm's server, if it may run, to look after the builder."""
    if farm.settings.flag("server.enabled"):
        with suppress(AgentFarmError, OSError):
            ensure_server(farm.root)


def _ask(
    context: Context,
    placings: Placings,
    host: str,
    asked: Placement,
    runtime: str | None,
    refs: Mapping[str, str],
) -> Spawned:
    request, environment = msgspec.to_builtins(asked), keys_of(context, runtime)
    document = placings.place(host, "place", request, refs=refs, environment=environment)
    answer = answer_of(Spawned, document, host)
    made = answer.builder or answer.plan
    if made is None or made.id != asked.id:
        raise Unreachable(f"{host} has not said what became of {asked.id}")
    return answer


@contextmanager
def _reserved(farm: Farm, host: str, wanted: Wanted, runtime: str | None) -> Iterator[tuple[str, Placed]]:
    """An id that no builder of this farm has, and its branch. An error or Ctrl-C releases both, unless the
    machine may have made the builder anyway.
    """
    order, work, start = wanted.order, wanted.work, wanted.start
    with names_lock(farm):
        name = _free_name(farm, work, start)
        term = next_term(farm)
        placed = _placed(wanted, name, hold_slot(farm, name.id, term, host), term, runtime)
        if not order.dry_run:
            try:
                _store(farm, name.id, placed)
                _begin_work(farm, name.id, placed, start)
            except BaseException:
                release_slot(read_book(farm), name.id, placed)
                raise
    if order.dry_run:
        try:
            yield name.id, placed
        finally:
            release_slot(read_book(farm), name.id, placed)
        return
    with being_made(farm, name.id):
        try:
            yield name.id, placed
        except (_MayBeThere, _Interrupted):
            raise
        except BaseException:
            _forget(farm, name, start)
            release_slot(read_book(farm), name.id, placed)
            raise


def _begin_work(farm: Farm, id: str, placed: Placed, start: Start) -> None:
    """Make its branch here. The builder is recorded already, so that a branch left by a kill goes with it."""
    try:
        if placed.new_branch:
            make_branch(farm.repository, placed.branch, start.tip)
        else:
            note_fetched(farm.repository, id, start.tip)
    except BaseException:
        _take_off_record(farm, id)  # the branch may belong to somebody who was first
        raise


def _placed(wanted: Wanted, name: Name, host: str, term: int, runtime: str | None) -> Placed:
    order, work, start = wanted.order, wanted.work, wanted.start
    return Placed(
        host,
        name.branch,
        start.base,
        start.base_commit,
        (work.task_text or work.protocol_name or work.spec or "shell")[:TASK_TEXT_KEPT],
        datetime.now(UTC).isoformat(timespec="microseconds"),
        runtime=runtime,
        permissions=order.permissions,
        new_branch=_is_new(start),
        issue=work.issue,
        source=work.source,
        term=term,
    )


def _is_new(start: Start) -> bool:
    return start.existing_branch is None or start.upstream is not None


def _free_name(farm: Farm, work: Work, start: Start) -> Name:
    """A name that is free; with the branch that the builder continues, if there is one."""
    book, branch = read_book(farm), start.existing_branch
    taken = {*farm.registry.ids(), *book.builders, *book.removed}
    for id, one in book.builders.items():
        if branch is not None and one.branch == branch:
            raise UsageError(f"The builder {id} already works on {branch}", hint=f"af status {id}")

    def is_taken(name: Name) -> bool:
        if name.id in taken:
            return True
        return branch is None and farm.repository.branch_commit(name.branch) is not None

    if work.is_named or work.type == "spec":
        name = next(work.names())
        if is_taken(name):
            raise UsageError(f"The name {name.id} is taken", hint=f"af status {name.id}")
    else:
        name = first_free(work.names(), is_taken)
    return Name(name.id, branch or name.branch)


def _store(farm: Farm, id: str, placed: Placed) -> None:
    with edit_book(farm) as held:
        held[0] = held[0].with_builder(id, placed)


def _take_off_record(farm: Farm, id: str) -> None:
    with edit_book(farm) as held:
        held[0] = held[0].without_builder(id)


def _forget(farm: Farm, name: Name, start: Start) -> None:
    _take_off_record(farm, name.id)
    if _is_new(start):
        drop_branch(farm.repository, name.branch, start.tip)
    else:
        drop(farm.repository, fetched_ref(name.id))
