"""`import`: turn worktrees that another tool or a person made into builders."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.ids import Name, first_free, slug_names
from agent_farm.builders.record import TASK_TEXT_KEPT, BuilderRecord, draw_run
from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import AgentFarmError, NotFound, UsageError
from agent_farm.farm.chosen_runtime import Chosen, choose_runtime
from agent_farm.farm.farm import Farm
from agent_farm.farm.home import settle_home
from agent_farm.git.divergence import merge_base
from agent_farm.git.ignoring import keep_apart
from agent_farm.git.worktrees import Worktree, belongs_here, list_worktrees, move_worktree, require_free
from agent_farm.launch import as_command
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import (
    TERMINAL_ALONE,
    Answer,
    Context,
    Failure,
    OfSeveral,
    Request,
    gathered,
)
from agent_farm.ports import reserve_ports

# Recognised by the names that these tools give their sessions.
_TOOLS = {"claudesquad_": "claude-squad", "wm-": "workmux", "wm_": "workmux"}
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,49}|[0-9][A-Za-z0-9_-]*-[A-Za-z0-9_-]+")
_PROMPT = (
    "Carry on with the work on the branch {branch}: read its commits and what is not committed first.{task}"
)


class Import(Request):
    worktrees: Annotated[
        tuple[str, ...],
        Meta(description="Worktrees to take over, by directory or branch; default: all there are"),
    ] = ()
    task: Annotated[str | None, Meta(description="The task to be done there")] = None
    runtime: Annotated[str | None, Meta(description="Runtime that continues the work")] = None
    dry_run: Annotated[bool, Meta(description="Show what would be done, and do nothing")] = False
    yes: Yes = False


class Candidate(Answer):
    """A worktree as it is, and what would become of it; `problem` says why it cannot be taken over."""

    worktree: str
    branch: str | None
    sessions: Annotated[tuple[str, ...], Meta(description="tmux sessions that are in it")]
    tool: Annotated[str | None, Meta(description="The tool that made it, if its session shows it")]
    problem: str | None
    moves_to: str | None


class Imported(Answer):
    id: str
    worktree: str
    branch: str


class AllImported(OfSeveral):
    found: Annotated[tuple[Candidate, ...], Meta(description="Of a dry run")] = ()
    imported: tuple[Imported, ...] = ()


Part = Candidate | Imported | Failure


@in_parts(
    "Take over worktrees that another tool or you made, as builders",
    gathered(AllImported, found=Candidate, imported=Imported, failed=Failure),
    effect="changes",
    doors=TERMINAL_ALONE,  # only a person may decide to move what a person made
    details="A worktree is moved to .builders with everything in it. Its branch stays yours: pruning the"
    " builder keeps it. Nothing is started; af resume starts the runtime.",
)
def import_(context: Context, request: Import) -> Iterator[Part]:
    farm = context.farm
    found = list(_chosen(context, request))
    if request.dry_run:
        yield from found
        return
    if not request.worktrees:
        raise UsageError("Name the worktrees to take over", hint="af import --dry-run")
    chosen = choose_runtime(farm, request.runtime, model=None, permissions=None)
    for one in found:
        try:
            yield _take(farm, one, chosen, request.task)
        except AgentFarmError as error:
            if len(found) == 1:
                raise
            yield Failure.of(one.branch or one.worktree, error)


def _chosen(context: Context, request: Import) -> Iterator[Candidate]:
    farm = context.farm
    all_of_them = list(_candidates(farm))
    if not request.worktrees:
        yield from all_of_them
        return
    here = context.directory or farm.root
    for word in request.worktrees:
        place = os.path.realpath(here / word)
        meant = [one for one in all_of_them if word in (one.branch, *one.sessions) or one.worktree == place]
        if not meant:
            raise NotFound(
                f"{word} is not a worktree of this repository that can be taken over",
                hint="af import --dry-run",
            )
        yield meant[0]


def _candidates(farm: Farm) -> Iterator[Candidate]:
    known = {record.worktree for record in farm.records().values()}
    taken = set[str]()
    for tree in list_worktrees(farm.repository)[1:]:
        path = os.path.realpath(tree.path)
        if path in known or Path(path).is_relative_to(farm.paths.state):
            continue
        sessions = farm.tmux.sessions_below(Path(path))
        tool = next(
            (tool for name in sessions for mark, tool in _TOOLS.items() if name.startswith(mark)), None
        )
        problem = _problem(farm, tree, sessions)
        name = None if problem else _name(farm, tree, taken)
        taken |= {name.id} if name else set()
        moves_to = str(farm.paths.worktree(name.id)) if name else None
        yield Candidate(path, tree.branch, sessions, tool, problem, moves_to)


def _problem(farm: Farm, tree: Worktree, sessions: Sequence[str]) -> str | None:
    if not belongs_here(farm.repository, tree.path):
        return "its directory is gone, or is another repository's"
    if tree.branch is None:
        return "no branch is checked out; git switch -c NAME there first"
    if tree.locked_reason is not None:
        return "it is locked; git worktree unlock first"
    if sessions:
        end = as_command("tmux", "kill-session", "-t", f"={sessions[0]}")
        return f"a tmux session is in it; end it first: {end}"
    return None


def _name(farm: Farm, tree: Worktree, taken: set[str]) -> Name:
    """Its own name if it is in .builders already, else the last word of its branch, if that is free."""
    known = farm.registry.read().ids | taken
    inside = tree.path.parent == farm.paths.worktrees
    own = tree.path.name if inside else str(tree.branch).rpartition("/")[2]
    if own not in known and _NAME.fullmatch(own) and (inside or not farm.paths.worktree(own).exists()):
        return Name(own, str(tree.branch))
    return first_free(
        slug_names(own), lambda name: name.id in known or os.path.lexists(farm.paths.worktree(name.id))
    )


def _take(farm: Farm, one: Candidate, chosen: Chosen, task: str | None) -> Imported:
    """Records nothing before the worktree has moved: a record must not name one that is not there."""
    if one.problem or one.moves_to is None or one.branch is None:
        raise AgentFarmError(f"{one.worktree} cannot be taken over", why=one.problem)
    place = Path(one.moves_to)
    keep_apart(farm.repository)
    settle_home(farm.repository)
    with file_lock(farm.paths.builder_lock(place.name), wait=0):
        if place.name in farm.registry.read().ids:
            raise AgentFarmError(f"{place.name} now belongs to another builder", hint="af import --dry-run")
        if str(place) != one.worktree:
            require_free(place)  # git would move it into the existing directory
            make_directory(farm.paths.worktrees, mode=0o755)
            with file_lock(farm.paths.worktree_lock):
                move_worktree(farm.repository, Path(one.worktree), place)
        record = _record(farm, place, one.branch, chosen, task)
        make_directory(farm.run(record.id).directory)
        told = f"\n\n{task}" if task else ""
        replace_file(farm.run(record.id).prompt, _PROMPT.format(branch=one.branch, task=told))
        farm.registry.put(record)
    return Imported(record.id, record.worktree, record.branch)


def _record(farm: Farm, place: Path, branch: str, chosen: Chosen, task: str | None) -> BuilderRecord:
    id, head = place.name, farm.repository.head()
    tip = farm.repository.resolve_commit(f"refs/heads/{branch}")
    return BuilderRecord(
        id=id,
        type="task",
        branch=branch,
        worktree=str(place),
        session=farm.paths.session(id),
        runtime=chosen.name,
        model=chosen.model,
        base=head.branch or head.commit,
        base_commit=merge_base(farm.repository, head.commit, tip) or tip,
        prompt_file=str(farm.run(id).prompt),
        role=None,
        task_text=(task or branch)[:TASK_TEXT_KEPT],
        protocol_name=None,
        protocol_args=None,
        spec=None,
        files=(),
        ports=reserve_ports(farm.root, id, farm.settings.number("ports.per_builder")),
        conversation_id=chosen.adapter.new_conversation_id(),
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state="stopped",
        reason="imported",
        run=draw_run(),
        socket=farm.tmux.path(os.environ),
        permissions=chosen.permissions,
        subdirectory="",
        new_branch=False,
        ephemeral=False,
    )
