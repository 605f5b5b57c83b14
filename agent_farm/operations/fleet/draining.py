"""`fleet_drain`: take a machine out of use: no new builders, its work comes home, builders move elsewhere."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, Any

from msgspec import Meta, Struct, structs

from agent_farm.errors import AgentFarmError, NoRoom, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import Builder
from agent_farm.fleet.book import Book, edit_book, read_book
from agent_farm.fleet.calling import engine_of, is_of_cluster
from agent_farm.operations.builders import Yes, failures_of
from agent_farm.operations.declare import in_parts
from agent_farm.operations.fleet.ask_machines import ask_machine
from agent_farm.operations.fleet.checkpoint import bring_home, checkpoint_lock, take_over
from agent_farm.operations.fleet.held_slots import FLEET, require_room, take_in
from agent_farm.operations.fleet.recover_elsewhere import place, silent
from agent_farm.operations.fleet.refresh import refresh
from agent_farm.operations.fleet.rows_elsewhere import shown_rows
from agent_farm.operations.fleet.spawn_elsewhere import LOCAL
from agent_farm.operations.for_home.copied_builders import AT_WORK
from agent_farm.operations.operation import Context, Failure, OfSeveral, Request
from agent_farm.operations.resume import Resume, resume


class FleetDrain(Request):
    host: Annotated[str, Meta(description="The machine")]
    move: Annotated[
        bool,
        Meta(description="Also move its builders elsewhere, except those in the middle of a turn"),
    ] = False
    on: Annotated[
        str | None,
        Meta(description="Machine to move them to, or local; default: wherever the fleet has room"),
    ] = None
    interrupt: Annotated[
        bool,
        Meta(description="Also move those in the middle of a turn, which is cut short"),
    ] = False
    undo: Annotated[
        bool, Meta(description="Put it back into use; builders that were moved stay where they are")
    ] = False
    yes: Yes = False


class Marked(Struct, frozen=True):
    host: str
    draining: bool


class Stays(Struct, frozen=True):
    """`at_home`: its work was fetched just now."""

    id: str
    state: str
    at_home: bool = True


class Moved(Struct, frozen=True):
    id: str
    on: str
    interrupted: bool


class Drained(OfSeveral):
    """`moved` are builders that continue elsewhere, `stay` those that are still there."""

    host: str
    draining: bool
    moved: tuple[Moved, ...] = ()
    stay: tuple[Stays, ...] = ()


Part = Marked | Moved | Stays | Failure


def _collect(parts: Sequence[Part]) -> Drained:
    (mark,) = (part for part in parts if isinstance(part, Marked))
    return Drained(
        host=mark.host,
        draining=mark.draining,
        moved=tuple(part for part in parts if isinstance(part, Moved)),
        stay=tuple(part for part in parts if isinstance(part, Stays)),
        failed=failures_of(parts),
    )


@in_parts(
    "Take a machine out of use: no new builders, and its builders' work comes home",
    _collect,
    effect="changes",
    outside=True,
    repeats=True,
    pool="start",
    details="Its builders continue there until `move` or `on` places them elsewhere, under the same ids,"
    " with their files and conversations. A builder in the middle of a turn stays unless"
    " `interrupt` is given; repeat the command to move it later.",
)
def fleet_drain(context: Context, request: FleetDrain) -> Iterator[Part]:
    farm, host = context.farm, request.host
    if request.undo and (request.move or request.on or request.interrupt):
        raise UsageError("--undo cannot be combined with other options", hint="af fleet drain --help")
    if request.on == host:
        raise UsageError(f"{host} is the machine being drained", hint="af fleet drain --help")
    moves = request.move or request.on is not None
    if request.interrupt and not moves:
        raise UsageError("--interrupt needs --move or --on", hint="af fleet drain --help")
    if request.on not in (None, LOCAL):
        require_room(read_book(farm), str(request.on))
    _mark(farm, host, draining=not request.undo)
    yield Marked(host, not request.undo)
    if request.undo:
        return
    book = refresh(farm, {host})
    came = bring_home(farm, book, host)
    for one in shown_rows(farm, book, book.on(host)):
        try:
            yield _move(context, one, host, request) if moves else _stays(one, came)
        except (AgentFarmError, OSError) as problem:
            error = problem if isinstance(problem, AgentFarmError) else AgentFarmError(str(problem))
            yield Failure.of(one.record.id, error)
    if moves:  # so that none of their work is left to fetch
        bring_home(farm, refresh(farm, {host}), host)


def _mark(farm: Farm, host: str, *, draining: bool) -> None:
    """A cluster's machine drains for all farms that use it."""
    book = read_book(farm)
    if book.cluster is not None and (host not in book.machines or is_of_cluster(book.machines[host])):
        engine = engine_of(book.cluster)
        (engine.drain if draining else engine.undrain)(book.farm, host)
        if draining:
            take_in(farm, host)
    with edit_book(farm) as held:
        machine = structs.replace(held[0].machine(host), draining=draining)
        held[0] = held[0].with_machine(host, machine)


def _stays(one: Builder, came: dict[str, str | AgentFarmError]) -> Stays:
    found = came.get(one.record.id)
    if isinstance(found, str):
        return Stays(one.record.id, one.status.state)
    why = found.sentence if found else one.status.reason or f"{one.host} cannot be asked"
    hint = f"af status {one.record.id}"
    raise AgentFarmError(f"The work of {one.record.id} could not be fetched", why=why, hint=hint)


def _move(context: Context, one: Builder, host: str, request: FleetDrain) -> Moved | Stays:
    """Ends the builder there first, so that it adds nothing to the work that is moved."""
    id, farm = one.record.id, context.farm
    if one.status.state == "unknown":
        raise AgentFarmError(f"{id} cannot be asked", why=one.status.reason, hint=f"af status {id}")
    if one.status.state in AT_WORK and not request.interrupt:
        return Stays(id, one.status.state)
    on = request.on or FLEET
    if on != LOCAL:
        _require_room(read_book(farm), host, on)
    with checkpoint_lock(farm, host):
        try:
            take_over(farm, read_book(farm), host, id, interrupt=request.interrupt)
            place(context, id, read_book(farm).builder(id), on, say=None, yes=request.yes)
        except (AgentFarmError, OSError):
            _go_on_there(context, one, request)
            raise
    was, placed = one.status, read_book(farm).builders.get(id)
    interrupted = was.cut_short or was.state in (*AT_WORK, "interrupted")
    return Moved(id, placed.host if placed else LOCAL, interrupted)


def _require_room(book: Book, host: str, on: str) -> None:
    """Checked before the builder is ended."""
    try:
        require_room(book, on, silent(book))
    except NoRoom as error:
        if on != FLEET:
            raise
        hint = f"af fleet drain {host} --on {LOCAL}"
        raise UsageError("No other machine takes builders", why=error.why, hint=hint) from error


def _go_on_there(context: Context, one: Builder, request: FleetDrain) -> None:
    """Start it again where it was, if it was stopped and could not be placed elsewhere."""
    id, host = one.record.id, str(one.host)
    book = refresh(context.farm, {host})
    placed = book.on(host).get(id)
    if placed is None or placed.row is None or one.status.is_finished or not placed.row.status.is_finished:
        return
    try:
        asked: Any = Resume(id=id, yes=request.yes)
        ask_machine(resume, context, book, asked, host, [id])
    except AgentFarmError as error:
        context.tell(f"{id} is stopped on {host} and could not be started again: {error.sentence}")
