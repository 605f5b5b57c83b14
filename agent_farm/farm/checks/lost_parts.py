"""Finds builders with a missing part, and parts that belong to no builder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path

from agent_farm.builders.events import load_events
from agent_farm.builders.record import BuilderRecord, record_from_json
from agent_farm.disk import is_locked
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.farm.healing import settle_interrupted_starts
from agent_farm.farm.locks import hold, lock_of
from agent_farm.farm.removal import settle_alone
from agent_farm.farm.restoring import is_restoring
from agent_farm.farm.trash import begun_removals
from agent_farm.git.checkout import CheckedOut
from agent_farm.git.reconnecting import bring_back
from agent_farm.git.registrations import linked_git_dir, registration_at
from agent_farm.git.worktrees import add_worktree, branch_checked_out_at, list_worktrees, require_free
from agent_farm.launch import as_command
from agent_farm.own_files import read_own
from agent_farm.paths import is_builder_id
from agent_farm.ports import release_ports, reserve_ports
from agent_farm.tmux.snapshot import PaneFacts

_GIT_SECONDS = 120.0  # how long a git that outlived its af may take to end


def check_interrupted_spawns(farm: Farm) -> Iterator[Finding]:
    records = farm.registry.read()
    for record in records.values():
        if record.state == "creating":
            begun = "restore" if is_restoring(record) else "spawn"
            yield Finding(
                "problem",
                f"{record.id}: its {begun} was interrupted or is still running",
                heal=partial(_settle, farm, record),
            )


def _settle(farm: Farm, record: BuilderRecord) -> str:
    settled = settle_interrupted_starts(farm, {record.id: record}, wait=_GIT_SECONDS)
    text = "; ".join(one.text for one in settled)
    if not all(one.done for one in settled):
        raise AgentFarmError(text)
    current = farm.registry.read().get(record.id)
    if current is not None and current.state == "creating":
        raise AgentFarmError(text or f"{record.id} is still being made", hint="af doctor --fix")
    return text or f"{record.id} is settled"


def check_interrupted_removals(farm: Farm) -> Iterator[Finding]:
    """An interrupted removal is undone, or completed if it is recorded."""
    for kept in begun_removals(farm):
        if not is_locked(farm.paths.builder_lock(kept.record.id)):
            yield Finding(
                "problem",
                f"{kept.record.id}: its removal was interrupted",
                heal=partial(settle_alone, farm, kept),
            )


def check_missing_worktrees(farm: Farm) -> Iterator[Finding]:
    """A builder whose removal is unfinished has all its files in the trash."""
    for record in farm.registry.read().values():
        if not record.is_made or _exists(record) or begun_removals(farm, record.id):
            continue
        gone = f"{record.id}: its worktree {record.worktree} is gone"
        lost = registration_at(farm.repository.common_dir, record.worktree_path)
        elsewhere = branch_checked_out_at(farm.repository, record.branch)
        if lost is not None and lost.is_whole:
            what = f"{gone}; git still has its index"
            yield Finding("problem", what, heal=partial(_bring_back, farm, record))
        elif elsewhere is not None:
            back = as_command("git", "-C", farm.root, "worktree", "move", elsewhere, record.worktree)
            yield Finding("problem", f"{gone}; {record.branch} is checked out in {elsewhere}", back)
        elif farm.repository.branch_commit(record.branch):
            what = f"{gone}; the branch exists"
            yield Finding("problem", what, heal=partial(_add_again, farm, record))
        else:
            what = f"{record.id}: its worktree and its branch {record.branch} are gone"
            yield Finding("problem", what, heal=partial(_forget, farm, record))


def _exists(record: BuilderRecord) -> bool:
    return os.path.lexists(record.worktree)


def _require_staying(farm: Farm, id: str) -> None:
    """The caller holds its lock. Unfinished, a removal would also take apart a second worktree."""
    if begun_removals(farm, id):
        raise AgentFarmError(f"The removal of {id} is not finished", hint="af doctor --fix")


def _bring_back(farm: Farm, record: BuilderRecord) -> str:
    with hold(farm, record.id):  # otherwise a removal may have taken both away in the meantime
        _require_staying(farm, record.id)
        require_free(record.worktree_path)
        lost = registration_at(farm.repository.common_dir, record.worktree_path)
        if lost is None or not lost.is_whole:
            raise AgentFarmError(f"git has forgotten {record.worktree}", hint="af doctor --fix")
        bring_back(farm.repository, lost)
    return f"{record.worktree} is there again, with what was staged"


def _add_again(farm: Farm, record: BuilderRecord) -> str:
    with lock_of(farm, record.id) as lock:
        _require_staying(farm, record.id)
        commit = farm.repository.branch_commit(record.branch)
        if record.id not in farm.registry.read() or commit is None:
            raise AgentFarmError(f"{record.id} was removed in the meantime", hint="af doctor --fix")
        add_worktree(
            farm.repository,
            record.worktree_path,
            record.branch,
            commit,
            lock_path=farm.paths.worktree_lock,
            builder_lock_fd=lock,
            new_branch=False,
            sparse=record.sparse,
        )
    return f"{record.worktree} has {record.branch} checked out again"


def _forget(farm: Farm, record: BuilderRecord) -> str:
    with lock_of(farm, record.id):
        _require_staying(farm, record.id)
        farm.registry.drop(record.id)
    release_ports(farm.root, [record.id])
    return f"the record of {record.id} is removed; nothing else was left of it"


def check_worktrees(farm: Farm) -> Iterator[Finding]:
    """Worktrees that exist but are not what their records say."""
    for record in farm.registry.read().values():
        if not record.is_made or not _exists(record):
            continue
        try:
            head = farm.tree(record).checked_out()
        except AgentFarmError as error:
            yield Finding("problem", f"{record.id}: {error.sentence}", error.hint)
            continue
        if head.branch != record.branch and farm.repository.branch_commit(record.branch) is None:
            yield _without_branch(farm, record, head)


def _without_branch(farm: Farm, record: BuilderRecord, head: CheckedOut) -> Finding:
    path, branch = record.worktree_path, record.branch
    gone = f"{record.id}: its branch {branch} is gone"
    if head.branch is None:
        again = as_command("git", "-C", path, "switch", "-c", branch)
        what = f"{gone}; its worktree is at {str(head.commit)[:12]} on no branch"
    else:
        again = as_command("git", "-C", path, "branch", "-m", head.branch, branch)
        what = f"{gone}; its worktree has {head.branch} checked out"
    return Finding("problem", what, again, heal=partial(_follow, farm, record, again))


def _follow(farm: Farm, record: BuilderRecord, again: str) -> str:
    with hold(farm, record.id) as now:
        if now.branch == record.branch and farm.repository.branch_commit(record.branch) is None:
            raise AgentFarmError("git has recorded no other name for it", hint=again)
    return f"the branch of {record.id} is {now.branch}"


def check_unknown_worktrees(farm: Farm) -> Iterator[Finding]:
    """A worktree that af made has a record as of its last start; any other is somebody else's."""
    paths = sorted(farm.paths.worktrees.glob("[!.]*"))
    registered = {str(tree.path) for tree in list_worktrees(farm.repository)}
    known = farm.registry.read().ids  # read last, because a spawn stores its record first
    for path in paths:
        if path.name in known:
            continue
        record = last_record(farm, path.name)
        if str(path) not in registered:
            yield Finding(
                "note", f"{path} is not a worktree of this repository; it is left alone", _repair(farm, path)
            )
        elif record is None:
            yield Finding("note", f"{path} is a worktree that af did not make; it is left alone")
        else:
            what = f"{path} is a worktree without a record"
            yield Finding("problem", what, heal=partial(_adopt, farm, record))


def _repair(farm: Farm, path: Path) -> str | None:
    """The command that tells git about a worktree that was moved without git."""
    git_dir = linked_git_dir(path / ".git")
    if git_dir is None or git_dir.parent != farm.repository.common_dir / "worktrees":
        return None
    return as_command("git", "-C", farm.root, "worktree", "repair", path)


def _adopt(farm: Farm, record: BuilderRecord) -> str:
    """The record as of its last start; its current state is found out when it is shown."""
    reserve_ports(farm.root, record.id, len(record.ports))
    with farm.registry.edit() as records:
        records.setdefault(record.id, record)
    return f"{record.id} has a record again ({record.state})"


def last_record(farm: Farm, id: str) -> BuilderRecord | None:
    """The record as of its last start; None if there is none."""
    try:
        document = json.loads(read_own(farm.run(id).record))
        return record_from_json(id, document, farm.paths).with_state("running")
    except (OSError, ValueError, RecursionError, DamagedFile):
        return None


def check_unknown_sessions(farm: Farm) -> Iterator[Finding]:
    panes = farm.tmux.panes().panes
    records = farm.registry.read()  # read last, as above
    sessions = {record.session for record in records.values()}
    sessions |= {name for id in records.unreadable if is_builder_id(id) for name in farm.paths.sessions(id)}
    prefix = f"af-{farm.paths.farm_name}-"
    for name, pane in panes.items():
        if name.startswith(prefix) and name not in sessions:
            yield Finding(
                "problem",
                f"the tmux session {name} belongs to no builder",
                heal=partial(_end, farm, name, pane),
            )


def _end(farm: Farm, name: str, pane: PaneFacts) -> str:
    farm.tmux.kill_session(pane)
    return f"{name} is ended"


def check_writes_outside(farm: Farm) -> Iterator[Finding]:
    """Files in the main checkout that a builder's runtime reported to have written."""
    for record in farm.registry.read().values():
        for path in sorted(_written(farm, record)):
            if _is_in_main_checkout(farm, Path(path)):
                yield Finding(
                    "problem",
                    f"{record.id} wrote {path}, which is in the main checkout",
                    as_command("git", "-C", farm.root, "diff", "--", path),
                )


def _written(farm: Farm, record: BuilderRecord) -> set[str]:
    details = (event.detail for event in load_events(farm.run(record.id).events))
    files = (detail.get("file") for detail in details if isinstance(detail, dict))
    return {file for file in files if isinstance(file, str)}


def _is_in_main_checkout(farm: Farm, path: Path) -> bool:
    ours = (farm.paths.worktrees, farm.paths.state)
    return path.is_relative_to(farm.root) and not any(path.is_relative_to(place) for place in ours)
