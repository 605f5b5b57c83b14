"""`eject`: turn a builder into a plain worktree and branch that `af` forgets."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.ending import end_processes
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.farm.locks import hold
from agent_farm.farm.waiting import keep_prompt
from agent_farm.git.registrations import connect, linked_git_dir, registration_at
from agent_farm.git.worktrees import belongs_here, branch_checked_out_at, move_worktree, require_free
from agent_farm.launch import as_command
from agent_farm.operations.builders import SomeBuilders, choose_each, each
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request, gathered
from agent_farm.ports import release_ports


class Eject(Request):
    ids: SomeBuilders
    to: Annotated[
        str | None,
        Meta(description="Directory to move the worktree into; default: it stays where it is"),
    ] = None
    stop: Annotated[bool, Meta(description="Stop the builder first if it is running")] = False


class Ejected(Answer):
    """What is left: a plain git worktree, with the branch checked out there."""

    id: str
    branch: str
    worktree: str
    prompt: Annotated[str | None, Meta(description="The file with its task")]


class AllEjected(OfSeveral):
    ejected: tuple[Ejected, ...]


Part = Ejected | Failure


@in_parts(
    "Leave a builder's worktree and branch to you, and forget the builder",
    gathered(AllEjected, ejected=Ejected, failed=Failure),
    effect="destroys",
    details="The work is not touched: commits, changes and untracked files stay as they are. The"
    " conversation and the reserved ports are given up, and af restore does not know the builder.",
)
def eject(context: Context, request: Eject) -> Iterator[Part]:
    records, unknown = choose_each(context, request.ids)
    yield from unknown
    here = context.directory or context.farm.root
    to = Path(os.path.normpath(here / request.to)) if request.to else None
    if to:
        _require_a_persons_place(context.farm, to)
    eject = partial(_eject, context.farm, to, request.stop)
    yield from each(records, eject, alone=not unknown, otherwise="was not ejected")


def _require_a_persons_place(farm: Farm, to: Path) -> None:
    """Our own directories delete what is in them, and git's directory is not for files."""
    where = Path(os.path.realpath(to))
    for own in (farm.paths.state, farm.paths.worktrees, farm.repository.common_dir):
        if where.is_relative_to(os.path.realpath(own)):
            raise UsageError(f"A worktree of yours cannot go to {to}", why=f"It is in {own}.")


def _eject(farm: Farm, to: Path | None, stop: bool, chosen: BuilderRecord) -> Ejected:
    with hold(farm, chosen.id) as record:
        if not record.is_made:
            raise AgentFarmError(f"{record.id} is {record.state}", hint=as_command("af", "stop", record.id))
        status = read_status(farm, record)
        if not stop and not status.is_finished:
            raise AgentFarmError(
                f"{record.id} is {status.state}",
                why="Its session would continue unnoticed.",
                hint=as_command("af", "eject", "--stop", *(["--to", str(to)] if to else []), record.id),
            )
        place = _moved_before(farm, record, to)
        moves = to is not None and place is None
        if place is None:
            path = farm.tree(record).path
            place = to / record.id if to else path
        if moves:
            require_free(place)
        for problem in end_processes(farm, [record]).values():
            raise problem
        if moves:
            make_directory(place.parent, mode=0o755)
            with file_lock(farm.paths.worktree_lock):
                move_worktree(farm.repository, path, place)
        return _forget(farm, record, place)


def _moved_before(farm: Farm, record: BuilderRecord, to: Path | None) -> Path | None:
    """Where a person moved it, or an eject that was interrupted; git's record may be out of date."""
    if os.path.lexists(record.worktree):
        return None
    lost = registration_at(farm.repository.common_dir, record.worktree_path)
    if lost and to and linked_git_dir(to / record.id / ".git") == lost.admin:
        connect(lost.admin, to / record.id)
    place = branch_checked_out_at(farm.repository, record.branch)
    return place if place and place != farm.root and belongs_here(farm.repository, place) else None


def _forget(farm: Farm, record: BuilderRecord, place: Path) -> Ejected:
    prompt = keep_prompt(farm, record.id)
    farm.registry.drop(record.id)
    release_ports(farm.root, [record.id])
    shutil.rmtree(farm.run(record.id).directory, ignore_errors=True)
    farm.paths.builder_lock(record.id).unlink(missing_ok=True)
    farm.paths.delivery_lock(record.id).unlink(missing_ok=True)
    return Ejected(record.id, record.branch, str(place), str(prompt) if prompt.exists() else None)
