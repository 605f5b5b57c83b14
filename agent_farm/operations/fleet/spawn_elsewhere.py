"""`spawn --on HOST`: reserved here, made there under the same id, from commits that travel first.

Who is on which machine is on record before anything is sent. What a machine has refused leaves nothing here;
where the connection dies it stays on record, and the next look says whether the builder is there.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from datetime import UTC, datetime

import msgspec
from msgspec import structs

from agent_farm.builders.ids import Name, first_free
from agent_farm.builders.record import TASK_TEXT_KEPT
from agent_farm.consent import require_consent
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, Unreachable, UsageError
from agent_farm.farm.base_commit import Start, choose_start
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Placed, edit_book, read_book
from agent_farm.fleet.calling import call, release_slot
from agent_farm.git.ignoring import keep_apart
from agent_farm.git.other_machine import drop_branch, make_branch
from agent_farm.operations.fleet.ask_machines import keys_of
from agent_farm.operations.fleet.held_slots import FLEET, hold_slot, names_lock
from agent_farm.operations.fleet.rows_elsewhere import answer_of, row_of
from agent_farm.operations.fleet.work_elsewhere import base_there, push, ref_there
from agent_farm.operations.for_home.answered import Place
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn import Spawned
from agent_farm.operations.spawn_request import Spawn, choose_mode
from agent_farm.operations.spawn_work import Work, find_work
from agent_farm.server.launching import ensure_server

LOCAL = "local"
_SECONDS = 1800.0  # a checkout of a large tree, on a slow disk


class _MayBeThere(Unreachable):
    """It was asked for, and nobody knows what came of it."""

    @classmethod
    def of(cls, error: Unreachable, id: str, host: str) -> _MayBeThere:
        evidence = (*error.evidence, f"{id} stays on record until {host} can be asked")
        return cls(error.what, why=error.why, evidence=evidence, hint=f"af status {id}")


def spawn_elsewhere(context: Context, order: Spawn, host: str) -> Spawned:
    farm = context.farm
    if host != FLEET and read_book(farm).cluster is None:
        read_book(farm).machine(host)
    _require_possible(farm, order)
    start = choose_start(farm, order.base, None, fetch=order.fetch or farm.settings.flag("spawn.fetch"))
    work, start = find_work(farm, choose_mode(order), start, name=order.name)
    if start.existing_branch:
        raise UsageError(
            f"{start.existing_branch} already exists here",
            why="A builder on another machine begins a branch of its own.",
            hint="af spawn --on local …",
        )
    for note in start.notes:
        context.tell(note)
    keep_apart(farm.repository)
    runtime = order.runtime or farm.settings.text("spawn.runtime")
    with _reserved(farm, host, work, start, runtime, order) as (id, placed):
        book, host, base = read_book(farm), placed.host, base_there(farm, start.base)
        push(farm, book, host, {ref_there(id): start.tip, **base})
        bare = structs.replace(order, on=None, base=None, fetch=False, name=None, no_queue=True)
        asked = Place(id, placed.term, placed.branch, start.tip, start.base if base else None, bare)
        try:
            answer = _ask(context, book, host, asked, runtime)
            if answer.builder is None:
                return answer
            row = row_of(id, placed, answer.builder)
        except Unreachable as error:
            raise _MayBeThere.of(error, id, host) from error
        _store(farm, id, structs.replace(placed, is_known=True, row=row))
    have_it_kept(farm)
    return structs.replace(answer, builder=structs.replace(answer.builder, host=host))


def have_it_kept(farm: Farm) -> None:
    """Somebody has to look after it: the farm's server, where it may run."""
    if farm.settings.flag("server.enabled"):
        with suppress(AgentFarmError, OSError):
            ensure_server(farm.root)


def _ask(context: Context, book: Book, host: str, asked: Place, runtime: str | None) -> Spawned:
    farm = context.farm
    require_consent(farm.root, farm.settings.requests(["env.pass"]), yes=asked.order.yes, ask=context.ask)
    document = call(
        book,
        host,
        "place",
        msgspec.to_builtins(asked),
        environment=keys_of(context, runtime),
        seconds=_SECONDS,
        tell=context.tell,
    )
    answer = answer_of(Spawned, document, host)
    made = answer.builder or answer.plan
    if made is None or made.id != asked.id:
        raise Unreachable(f"{host} has not said what became of {asked.id}")
    return answer


def _require_possible(farm: Farm, order: Spawn) -> None:
    """What has to do with builders or files of this machine stays on it."""
    given = {
        "--issue": order.issue is not None,
        "--spec": order.spec is not None,
        "--branch": order.branch is not None,
        "--after": order.after is not None,
        "--stack": order.stack is not None,
        "--ephemeral": order.ephemeral,
        "--runtimes": bool(order.runtimes),
        "-n": order.copies > 1,
        "--tasks-file": order.tasks is not None,
        "--role": order.role is not None,
        "worktree.uncommitted": farm.settings.flag("worktree.uncommitted"),
    }
    if wrong := [name for name, is_given in given.items() if is_given]:
        raise UsageError(
            f"{wrong[0]} does not go with --on",
            why="A builder on another machine has what is committed, and waits for none of here.",
            hint="af spawn --on local …",
        )


@contextmanager
def _reserved(
    farm: Farm, host: str, work: Work, start: Start, runtime: str | None, order: Spawn
) -> Iterator[tuple[str, Placed]]:
    """An id that no builder of this farm has, and its branch. An error takes both back, unless the machine
    may have made it all the same."""
    with names_lock(farm):
        if work.is_named or work.type == "spec":
            name = next(work.names())
            if _is_taken(farm, name):
                raise UsageError(f"The name {name.id} is taken", hint=f"af status {name.id}")
        else:
            name = first_free(work.names(), lambda name: _is_taken(farm, name))
        title = (work.task_text or work.protocol_name or work.spec or "shell")[:TASK_TEXT_KEPT]
        now = datetime.now(UTC).isoformat(timespec="microseconds")
        host = hold_slot(farm, name.id, host)
        placed = Placed(host, name.branch, start.base, start.tip, title, now, runtime=runtime)
        placed = structs.replace(placed, permissions=order.permissions)
        if not order.dry_run:
            try:
                make_branch(farm.repository, name.branch, start.tip)
                placed = _store_new(farm, name.id, placed)
            except BaseException:
                release_slot(read_book(farm), name.id, host)
                raise
    if order.dry_run:
        try:
            yield name.id, placed
        finally:
            release_slot(read_book(farm), name.id, host)
        return
    with file_lock(farm.paths.builder_lock(name.id), wait=0):
        try:
            yield name.id, placed
        except _MayBeThere:
            raise
        except AgentFarmError:
            _forget(farm, name, start.tip)
            release_slot(read_book(farm), name.id, host)
            raise
        finally:
            with suppress(OSError):
                farm.paths.builder_lock(name.id).unlink()


def _is_taken(farm: Farm, name: Name) -> bool:
    book = read_book(farm)
    taken = {*farm.registry.ids(), *book.builders, *book.removed}
    return name.id in taken or farm.repository.branch_commit(name.branch) is not None


def _store_new(farm: Farm, id: str, placed: Placed) -> Placed:
    """Under the next term."""
    with edit_book(farm) as held:
        placed = structs.replace(placed, term=held[0].terms + 1)
        held[0] = structs.replace(held[0].with_builder(id, placed), terms=placed.term)
    return placed


def _store(farm: Farm, id: str, placed: Placed) -> None:
    with edit_book(farm) as held:
        held[0] = held[0].with_builder(id, placed)


def _forget(farm: Farm, name: Name, commit: str) -> None:
    with edit_book(farm) as held:
        held[0] = held[0].without_builder(name.id)
    drop_branch(farm.repository, name.branch, commit)
