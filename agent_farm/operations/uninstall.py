"""`uninstall`: remove what `af` left in this repository, and nobody's work."""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.errors import WorkWouldBeLost
from agent_farm.farm.deletion import delete_tree
from agent_farm.farm.farm import Farm
from agent_farm.farm.ready_worktrees import drain
from agent_farm.farm.trash import expire, list_kept
from agent_farm.git.ignoring import leave_to_git
from agent_farm.git.keeping import drop_all_refs
from agent_farm.git.sparse import leave_sparse
from agent_farm.git.worktrees import list_worktrees
from agent_farm.launch import as_command
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import TERMINAL_ALONE, Answer, Context, Request, gathered
from agent_farm.paths import IGNORED_BY_GIT
from agent_farm.server.stopping import stop_server


class Uninstall(Request):
    dry_run: Annotated[bool, Meta(description="Show what would be removed, and remove nothing")] = False


class Step(Answer):
    """One thing that is, or would be, removed."""

    what: str


class Uninstalled(Answer):
    steps: tuple[str, ...]
    left: Annotated[tuple[str, ...], Meta(description="What stays, because af did not make it")]


class LeftThere(Answer):
    what: str


Part = Step | LeftThere


@in_parts(
    "Remove what af keeps in this repository; refused while there are builders",
    gathered(Uninstalled, steps=(Step, "what"), left=(LeftThere, "what")),
    effect="destroys",
    tolerant=True,
    doors=TERMINAL_ALONE,  # it ends the server of the other doors
)
def uninstall(context: Context, request: Uninstall) -> Iterator[Part]:
    farm = context.farm
    _require_no_builders(farm)
    _require_no_worktrees(farm)
    kept = len(list_kept(farm))
    if kept:
        yield Step(f"{kept} removed builder{'s' * (kept != 1)}, for good: af restore --list")
    yield Step("the farm's server, its sessions, schedules and credentials")
    yield Step(f"{farm.paths.state}, and the refs of agent-farm")
    yield Step(f"{' and '.join(IGNORED_BY_GIT)} in .git/info/exclude")
    if not request.dry_run:
        yield from _remove(farm)
    if farm.paths.worktrees.is_dir() and any(farm.paths.worktrees.iterdir()):
        yield LeftThere(f"{farm.paths.worktrees}: it has worktrees that are not af's")
    for name in ("agent-farm.toml", "codev"):
        if (farm.root / name).exists():
            yield LeftThere(f"{name}, which is the repository's")


def _require_no_builders(farm: Farm) -> None:
    ids = sorted(farm.records().ids)
    if not ids and farm.paths.fleet.exists():
        raise WorkWouldBeLost("The farm still has machines", hint="af fleet status")
    if ids:
        raise WorkWouldBeLost(
            f"There {'are' if len(ids) > 1 else 'is'} still {len(ids)} builder{'s' * (len(ids) != 1)}",
            why="Land and remove them, or keep their worktrees: af eject --stop --to DIRECTORY ID…",
            evidence=ids[:20],
            hint="af prune --stop",
        )


def _require_no_worktrees(farm: Farm) -> None:
    """Raise if somebody's own worktree is inside; those of removed builders and of checks are ours."""
    paths = farm.paths
    places = [Path(os.path.realpath(tree.path)) for tree in list_worktrees(farm.repository)[1:]]
    ours = (paths.trash, paths.trial(""))
    for place in places:
        if place.is_relative_to(paths.state) and not any(map(place.is_relative_to, ours)):
            raise WorkWouldBeLost(
                f"{place} is a worktree inside the directory that would be removed",
                hint=as_command("git", "worktree", "move", place, farm.root.parent / place.name),
            )


def _remove(farm: Farm) -> Iterator[LeftThere]:
    stop_server(farm.root)
    drain(farm)
    found = expire(farm, 0)
    for problem in found.busy:
        raise problem
    drop_all_refs(farm.repository)
    leave_to_git(farm.repository)
    leave_sparse(farm.repository)
    with suppress(OSError):
        farm.paths.worktrees.rmdir()
    if farm.paths.state.is_dir():
        for path in delete_tree(farm.paths.state):
            yield LeftThere(f"{path}: it contains files of another user")
