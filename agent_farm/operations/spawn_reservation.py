"""The only step in which spawns race: under the lock, they reserve id, branch and ports, or queue."""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Collection, Iterator
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime

from msgspec import to_builtins
from msgspec.structs import replace

from agent_farm.builders.config import BuilderConfig
from agent_farm.builders.ids import Name, first_free
from agent_farm.builders.record import TASK_TEXT_KEPT, BuilderRecord, draw_run
from agent_farm.builders.registry import Records
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken, NoRoom, NotFound, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.waiting import has_room, in_order, requeue, require_room, store_order
from agent_farm.launch import as_command
from agent_farm.operations.spawn_plan import Plan
from agent_farm.ports import release_ports, reserve_ports


def config_of(farm: Farm, plan: Plan, name: Name) -> BuilderConfig:
    """The plan's record under a free name."""
    return BuilderConfig(
        type=plan.work.type,
        id=name.id,
        branch=plan.start.existing_branch or name.branch,
        worktree=farm.paths.worktree(name.id),
        prompt=plan.work.prompt,
        role=plan.role,
        context_files=plan.work.files,
        protocol_args=plan.work.protocol_args,
        runtime=plan.chosen.name,
        model=plan.chosen.model,
        base=plan.start.base,
        sparse=plan.sparse,
    )


def free_name(farm: Farm, plan: Plan, records: Records) -> Name:
    """The first of the plan's names that no record, directory or branch has; call it under the lock."""
    elsewhere = _ids_elsewhere(farm)
    if plan.work.type == "spec":
        _require_no_builder(farm, plan, records, elsewhere)

    def is_taken(name: Name) -> bool:
        if name.id in records.ids or name.id in elsewhere or farm.paths.worktree(name.id).exists():
            return True
        return plan.start.existing_branch is None and farm.repository.has_branch(name.branch)

    if plan.work.is_named and is_taken(name := next(plan.work.names())):
        raise UsageError(
            f"The name {name.id} is taken",
            why=f"A builder, a worktree or the branch {name.branch} already uses it.",
            hint=as_command("git", "log", "-1", name.branch),
        )
    return first_free(plan.work.names(), is_taken)


def reserve(
    farm: Farm, plan: Plan, stack: ExitStack, waited: BuilderRecord | None
) -> tuple[BuilderRecord, int | None]:
    """Records the builder, and holds its lock to show that this process lives; a queued one has none."""
    id = None
    try:
        with farm.registry.edit() as records:
            if waited:
                name = _still_waiting(farm, waited, records)
            else:
                if plan.start.upstream:
                    _require_new_branch(farm, plan, records)
                waits = _waits(farm, plan, records)
                name = free_name(farm, plan, records)
                if waits:
                    return _put_in_queue(farm, plan, config_of(farm, plan, name), records), None
            config = config_of(farm, plan, name)
            id = config.id
            lock = stack.enter_context(file_lock(farm.paths.builder_lock(id), wait=0, inherit=True))
            ports = reserve_ports(farm.root, id, farm.settings.number("ports.per_builder"))
            record = _record(farm, plan, config, ports)
            if waited:
                record = replace(record, created_at=waited.created_at)
            records[id] = record
    except BaseException as error:
        if id is not None and not isinstance(error, LockTaken):
            with uninterrupted():
                _give_back(farm, id)
        raise
    return record, lock


def _still_waiting(farm: Farm, waited: BuilderRecord, records: Records) -> Name:
    current = records.get(waited.id)
    if current is None or current.state != "queued":
        raise NotFound(f"{waited.id} is no longer waiting", hint="af status")
    if not has_room(farm, records):
        raise NoRoom(f"There is no room for {waited.id} any more", hint="af status")
    return Name(waited.id, waited.branch)


def _waits(farm: Farm, plan: Plan, records: Records) -> bool:
    """Whether it has to wait, also because others already wait for room: nobody overtakes them."""
    if plan.order.no_queue:
        require_room(farm, records)
    if plan.after is not None:
        return True
    before = any(record.after is None for record in in_order(records))
    return not plan.order.no_queue and (before or not has_room(farm, records))


def _put_in_queue(farm: Farm, plan: Plan, config: BuilderConfig, records: Records) -> BuilderRecord:
    """The base is recorded by name: the builder will start from where it is by then."""
    if plan.carry:
        raise UsageError(
            "Uncommitted changes cannot be carried to a builder that has to wait",
            why="worktree.uncommitted is set, and this checkout has uncommitted changes.",
            hint="git stash",
        )
    record = replace(_record(farm, plan, config, ()), state="queued")
    base = None if plan.order.branch or plan.stack else plan.start.base
    order = replace(plan.order, base=base, after=plan.after, role=str(plan.role) if plan.order.role else None)
    store_order(
        farm,
        record,
        request=to_builtins(order),
        directory=plan.directory,
        prompt=plan.work.prompt,
        issue=None if plan.work.issue_read is None else to_builtins(plan.work.issue_read),
    )
    records[record.id] = record
    return record


def _give_back(farm: Farm, id: str) -> None:
    """Releases everything reserved for a builder that was not made, as far as a full disk allows."""
    with suppress(AgentFarmError):
        if not requeue(farm, id):
            farm.registry.drop(id)
        release_ports(farm.root, [id])
        farm.paths.builder_lock(id).unlink(missing_ok=True)


def _record(farm: Farm, plan: Plan, config: BuilderConfig, ports: tuple[int, ...]) -> BuilderRecord:
    has_prompt = config.prompt is not None
    return BuilderRecord(
        id=config.id,
        type=config.type,
        branch=config.branch,
        worktree=str(config.worktree),
        session=farm.paths.session(config.id),
        runtime=config.runtime,
        model=config.model,
        base=config.base,
        base_commit=plan.start.base_commit,
        prompt_file=str(farm.run(config.id).prompt) if has_prompt else None,
        role=str(config.role) if config.role else None,
        task_text=plan.work.task_text[:TASK_TEXT_KEPT] if plan.work.task_text is not None else None,
        protocol_name=plan.work.protocol_name,
        protocol_args=None if config.protocol_args is None else dict(config.protocol_args),
        phases=plan.work.phases,
        spec=plan.work.spec,
        issue=plan.work.issue,
        source=plan.work.source,
        after=plan.after,
        stack=plan.stack,
        files=config.context_files,
        ports=ports,
        conversation_id=plan.chosen.adapter.new_conversation_id(),
        # a removal recognises its builder by this, so seconds are too coarse
        created_at=datetime.now(UTC).isoformat(timespec="microseconds"),
        state="creating",
        reason=None,
        run=draw_run(),
        socket=farm.tmux.path(os.environ),
        permissions=plan.chosen.permissions,
        unlocked=plan.chosen.unlock,
        subdirectory=plan.subdirectory,
        new_branch=plan.start.existing_branch is None or plan.start.upstream is not None,
        ephemeral=plan.order.ephemeral,
        sparse=config.sparse,
    )


def _require_new_branch(farm: Farm, plan: Plan, records: Records) -> None:
    """Another spawn may have claimed the branch first; both would take it for their own."""
    branch = plan.start.existing_branch
    taken = next((record.id for record in records.values() if record.branch == branch), None)
    if taken is not None:
        raise UsageError(
            f"The builder {taken} already works on {branch}", hint=as_command("af", "attach", taken)
        )


def _ids_elsewhere(farm: Farm) -> Collection[str]:
    """Ids of builders on other machines, and of removed ones that can be restored."""
    if not farm.paths.fleet.exists():
        return ()
    from agent_farm.fleet.book import read_book

    book = read_book(farm)
    return {*book.builders, *book.removed}


def _require_no_builder(farm: Farm, plan: Plan, records: Records, elsewhere: Collection[str]) -> None:
    spec_id = next(plan.work.names()).id
    if spec_id in elsewhere:
        raise UsageError(
            f"Project {spec_id} already has a builder, on another machine", hint=f"af status {spec_id}"
        )
    if spec_id in records.unreadable:
        raise records.unreadable[spec_id]
    if spec_id in records:
        record = records[spec_id]
        raise UsageError(
            f"Project {spec_id} already has a builder ({record.state})",
            why="Continue it with `af attach` or `af resume`, or remove it with `af prune` once its work has"
            " landed.",
            evidence=[as_command("af", verb, spec_id) for verb in ("attach", "resume", "prune")],
            hint=as_command("af", "attach" if record.state == "running" else "resume", spec_id),
        )
    path = farm.paths.worktree(spec_id)
    if path.exists():
        raise AgentFarmError(
            f"{path} already exists and does not belong to a builder",
            why=f"The worktree of project {spec_id} would go there.",
            hint=as_command("mv", path, f"{path}.old"),
        )


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Ignores further Ctrl-Cs, so that they do not interrupt the clean-up after the first."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)
