"""Finds what builders that are gone, and processes that died, have left behind.

Each check lists what exists before it reads the records: a spawn stores its record first, so whatever has
none does not belong to a spawn under way.
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.disk import file_lock, is_locked, stale_temporaries
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.checks.finding import Finding, partly_written, unlink
from agent_farm.farm.checks.lost_parts import last_record
from agent_farm.farm.deletion import delete
from agent_farm.farm.ending import end_left
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.locks import hold
from agent_farm.farm.trash import drop_empty_place, is_empty_place, list_kept, not_understood, set_aside
from agent_farm.git.keeping import LOCKED, unlock
from agent_farm.git.landed import unlanded_commits
from agent_farm.git.landing_targets import landing_targets
from agent_farm.git.worktree_removal import delete_branch, drop_registration
from agent_farm.git.worktrees import branch_checked_out_at, list_worktrees
from agent_farm.launch import as_command
from agent_farm.paths import user_state_directory
from agent_farm.processes import processes_of_runs
from agent_farm.server.launching import has_crashed

if TYPE_CHECKING:
    from agent_farm.fleet.book import Placed

_PREFIX = "builder/"


def check_branches(farm: Farm) -> Iterator[Finding]:
    """Branches of builders that have neither a record nor a worktree; other tools use such names, too."""
    branches = farm.repository.branches()
    former, records = list(_former(farm)), farm.registry.read()
    made = {record.branch for record in former}
    known = {record.branch for record in (*records.values(), *former) if record.id in records.ids}
    known |= {placed.branch for placed in _placed_elsewhere(farm).values()}
    for branch in branches:
        if not branch.startswith(_PREFIX) or branch in known:
            continue
        if branch_checked_out_at(farm.repository, branch) is not None:
            continue
        tip = farm.repository.branch_commit(branch)
        if tip is None:
            continue
        targets = landing_targets(farm.repository, None)
        commits = unlanded_commits(farm.repository, [tip], targets)
        if commits:
            yield Finding(
                "note",
                f"the branch {branch} has {_counted(len(commits))} not landed, and belongs to no builder",
                as_command("af", "spawn", "--branch", branch, "--shell"),
            )
        elif branch in made:
            yield Finding(
                "problem",
                f"the branch {branch} belongs to no builder; its work has landed",
                heal=partial(_delete_branch, farm, branch, tip),
            )
        else:
            yield Finding(
                "note",
                f"the branch {branch} belonged to no builder that af knows of; its work has landed",
                as_command("git", "-C", farm.root, "branch", "-d", branch),
            )


def _placed_elsewhere(farm: Farm) -> Mapping[str, Placed]:
    """Builders on other machines of the fleet, and those that can be restored there."""
    if not farm.paths.fleet.exists():
        return {}
    from agent_farm.fleet.book import read_book  # few farms have a fleet

    book = read_book(farm)
    return {**book.removed, **book.builders}


def _former(farm: Farm) -> Iterator[BuilderRecord]:
    """Former builders, whose remains show that af made what is left."""
    for kept in list_kept(farm):
        yield kept.record
    yield from filter(None, (last_record(farm, run.name) for run in farm.paths.runs.glob("*")))


def _counted(commits: int) -> str:
    return "1 commit that has" if commits == 1 else f"{commits} commits that have"


def _delete_branch(farm: Farm, branch: str, commit: str) -> str:
    """Refused by git if it is no longer at the commit that was judged."""
    delete_branch(farm.repository, branch, commit)
    return f"{branch} is deleted (it was {commit[:12]})"


def check_registrations(farm: Farm) -> Iterator[Finding]:
    """Worktrees that git remembers under .builders/ or in the trash, but whose directories are gone."""
    trees = list_worktrees(farm.repository)
    known = {str(farm.paths.worktrees / id) for id in farm.registry.read().ids}
    made = {record.worktree for record in _former(farm)}
    for tree in trees:
        if os.path.lexists(tree.path) or str(tree.path) in known:
            continue
        is_builders = tree.path.parent == farm.paths.worktrees and tree.locked_reason is None
        is_removed = tree.path.is_relative_to(farm.paths.trash) and tree.locked_reason == LOCKED
        what = f"git still lists {tree.path}, which no longer exists"
        if is_removed or (is_builders and str(tree.path) in made):
            yield Finding("problem", what, heal=partial(_drop, farm, tree.path))
        elif is_builders:
            yield Finding("note", f"{what}; af did not make it", "git worktree prune")


def _drop(farm: Farm, path: Path) -> str:
    unlock(farm.repository, path)
    drop_registration(farm.repository, path)
    return f"{path} is no longer registered"


def check_run_directories(farm: Farm) -> Iterator[Finding]:
    paths = sorted(farm.paths.runs.glob("*"))
    known = {*farm.registry.read().ids, *_placed_elsewhere(farm)}
    for path in paths:
        if path.name not in known:
            yield Finding(
                "problem",
                f"the run directory of {path.name} belongs to no builder",
                heal=partial(_to_trash, farm, path),
            )


def _to_trash(farm: Farm, path: Path) -> str:
    target = set_aside(farm, path.name)
    os.rename(path, target)
    return f"it is moved to {target}"


def check_locks(farm: Farm) -> Iterator[Finding]:
    """A lock file by itself locks nothing; those of builders that are gone are merely untidy."""
    locks = farm.paths.locks
    paths = sorted([*locks.glob("builder-*.lock"), *locks.glob("delivery-*.lock")])
    records = farm.registry.read()
    for path in paths:
        id = path.stem.partition("-")[2]
        if id not in records.ids and not is_locked(path):
            yield Finding(
                "note",
                f"the lock file {path.name} belongs to a builder that is gone",
                heal=partial(_unlink_lock, path),
            )


def _unlink_lock(path: Path) -> str:
    with file_lock(path, wait=0):  # otherwise a new holder would hold a lock that nobody else can see
        path.unlink()
    return f"{path.name} is removed"


def check_temporaries(farm: Farm) -> Iterator[Finding]:
    """Files whose writers were killed; the files that they were to replace are intact."""
    run_places = [path for path in farm.paths.runs.glob("*") if path.is_dir() and not path.is_symlink()]
    trash_places = [path for path in farm.paths.trash.glob("*/run") if not path.is_symlink()]
    places = (
        farm.paths.state,
        farm.paths.checks,
        user_state_directory(),
        farm.repository.common_dir / "info",
        *run_places,
        *trash_places,
        *(path.parent for path in trash_places),
    )
    for path in (path for place in places for path in stale_temporaries(place)):
        yield partly_written(path)


def check_server(farm: Farm) -> Iterator[Finding]:
    file = farm.paths.state / "server.json"
    try:
        crashed = has_crashed(farm.root)
    except DamagedFile:
        crashed = True
    if crashed:
        yield Finding(
            "problem",
            f"{file} names a server that has ended",
            heal=partial(unlink, file),
        )


def check_trash(farm: Farm) -> Iterator[Finding]:
    kept = list_kept(farm)
    if kept:
        builders = "removed builder" if len(kept) == 1 else "removed builders"
        yield Finding("ok", f"{len(kept)} {builders} can be restored", "af prune --expire 30d")
    for path in farm.paths.trash.glob("[!.]*"):
        id = path.name.rpartition("-")[0]
        if is_empty_place(path) and not is_locked(farm.paths.builder_lock(id)):
            yield Finding("note", f"{path} is from a removal that never began", heal=partial(_remove, path))
    for path in not_understood(farm):
        yield Finding(
            "note",
            f"this af did not create {path}; it is left alone",
            as_command("ls", "-l", path),
        )
    for path in [*farm.paths.trash.glob(".*.deleting"), *farm.paths.trash.glob("[!.]*/.*.deleting")]:
        yield Finding(
            "note",
            f"{path} was only partly deleted",
            heal=partial(_delete, path),
        )


def _remove(path: Path) -> str:
    drop_empty_place(path)
    return f"{path.name} is removed"


def _delete(path: Path) -> str:
    delete(str(path))
    if os.path.lexists(path):
        raise AgentFarmError(
            f"{path} cannot be deleted",
            why="It contains files of another user.",
            hint=as_command("sudo", "rm", "-rf", path),
        )
    return f"{path.name} is deleted"


def check_left_processes(farm: Farm) -> Iterator[Finding]:
    """The launcher and the keeper were killed together, or a process outlived `af stop`.

    A builder that exited or failed does not count: its session is the user's shell, with whatever runs there.
    """
    for record, pids in _left(farm).values():
        yield Finding(
            "problem",
            f"{record.id} is gone, but left {_named(pids)} running",
            heal=partial(_end, farm, record),
        )


def _left(farm: Farm) -> dict[str, tuple[BuilderRecord, list[int]]]:
    records = farm.registry.read()
    found = processes_of_runs(record.run for record in records.values())  # before tmux is asked: a builder
    some = [record for record in records.values() if record.run in found]  # that starts now has no process
    statuses = read_statuses(farm, some) if some else {}
    return {record.id: (record, found[record.run]) for record in some if _is_gone(statuses[record.id])}


def _is_gone(status: Status) -> bool:
    return status.state in ("lost", "stopped")


def _end(farm: Farm, record: BuilderRecord) -> str:
    with hold(farm, record.id) as current:
        if record.id not in _left(farm):
            return f"{record.id} has none left"
        if left := end_left([current]):
            raise left[current.id]
    return "they are ended"


def _named(pids: list[int]) -> str:
    return f"{'process' if len(pids) == 1 else 'processes'} {', '.join(map(str, sorted(pids)))}"
