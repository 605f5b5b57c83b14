"""Builders of which a part is missing, and parts that belong to no builder."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from datetime import UTC, datetime
from functools import partial
from pathlib import Path

from agent_farm.builders.config import BuilderType
from agent_farm.builders.events import load_events
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.stored_record import record_from_json
from agent_farm.disk import file_lock
from agent_farm.errors import DamagedFile
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.farm.healing import settle_interrupted
from agent_farm.farm.pool import pool_directory
from agent_farm.farm.prune import finish_removal
from agent_farm.farm.running import draw_run
from agent_farm.farm.trash import Kept, list_kept
from agent_farm.git.worktrees import Worktree, add_worktree, list_worktrees
from agent_farm.launch import as_command
from agent_farm.own_files import read_own
from agent_farm.ports import release_ports, reserve_ports

_GIT_SECONDS = 120.0  # how long a git that outlived its af may take to end


def check_interrupted_spawns(farm: Farm) -> Iterator[Finding]:
    records = farm.registry.read()
    for record in records.values():
        if record.state == "creating":
            yield Finding(
                "problem",
                f"{record.id}: its spawn was cut short, or is under way",
                heal=partial(_settle, farm, record),
            )


def _settle(farm: Farm, record: BuilderRecord) -> str:
    done = settle_interrupted(farm, {record.id: record}, wait=_GIT_SECONDS)
    return "; ".join(done) or f"{record.id} is settled"


def check_interrupted_removals(farm: Farm) -> Iterator[Finding]:
    """A removal that was cut short after its worktree had been moved is carried to its end."""
    records = farm.registry.read()
    for kept in list_kept(farm):
        record = records.get(kept.record.id)
        if record is None or record.state == "creating" or _exists(record):
            continue
        if record.created_at == kept.record.created_at:
            yield Finding(
                "problem",
                f"{record.id}: its removal was cut short",
                heal=partial(_finish, farm, kept),
            )


def _finish(farm: Farm, kept: Kept) -> str:
    finish_removal(farm, kept)
    return f"{kept.record.id} is removed; af restore {kept.record.id} brings it back"


def check_missing_worktrees(farm: Farm) -> Iterator[Finding]:
    for record in farm.registry.read().values():
        if record.state == "creating" or _exists(record):
            continue
        if farm.repository.branch_commit(record.branch):
            yield Finding(
                "problem",
                f"{record.id}: its worktree {record.worktree} is gone; the branch is there",
                heal=partial(_add_again, farm, record),
            )
        else:
            yield Finding(
                "problem",
                f"{record.id}: its worktree and its branch {record.branch} are gone",
                heal=partial(_forget, farm, record),
            )


def _exists(record: BuilderRecord) -> bool:
    return os.path.lexists(record.worktree)


def _add_again(farm: Farm, record: BuilderRecord) -> str:
    commit = farm.repository.branch_commit(record.branch) or record.base_commit
    with file_lock(farm.paths.builder_lock(record.id), wait=_GIT_SECONDS, inherit=True) as lock:
        add_worktree(
            farm.repository,
            record.worktree_path,
            record.branch,
            commit,
            lock_path=farm.paths.worktree_lock,
            builder_lock_fd=lock,
            new_branch=False,
        )
    return f"{record.worktree} has {record.branch} checked out again"


def _forget(farm: Farm, record: BuilderRecord) -> str:
    with farm.registry.edit() as records:
        records.pop(record.id, None)
    release_ports(farm.root, [record.id])
    return f"the record of {record.id} is removed; nothing else was left of it"


def check_unknown_worktrees(farm: Farm) -> Iterator[Finding]:
    paths = sorted(farm.paths.worktrees.glob("*"))
    registered = {str(tree.path): tree for tree in list_worktrees(farm.repository)}
    known = {record.worktree for record in farm.registry.read().values()}  # last: a spawn stores it first
    for path in paths:
        if str(path) in known or path == pool_directory(farm):
            continue
        tree = registered.get(str(path))
        if tree is None:
            yield Finding("note", f"{path} is no worktree of this repository; it is left alone")
        else:
            yield Finding(
                "problem",
                f"{path} is a worktree without a record",
                heal=partial(_adopt, farm, tree),
            )


def _adopt(farm: Farm, tree: Worktree) -> str:
    """A record again: the one of its last start where it is left, else what can be told from git."""
    id = tree.path.name
    record = _last_record(farm, id) or _guessed_record(farm, tree)
    with farm.registry.edit() as records:
        records.setdefault(id, record)
    return f"{id} has a record again ({record.state})"


def _last_record(farm: Farm, id: str) -> BuilderRecord | None:
    try:
        record = record_from_json(id, json.loads(read_own(farm.run(id).record)), farm.paths)
    except (OSError, ValueError, DamagedFile):
        return None
    return record.with_state("running")


def _guessed_record(farm: Farm, tree: Worktree) -> BuilderRecord:
    id = tree.path.name
    head = farm.repository.head(farm.root)
    type: BuilderType = "shell" if id.startswith("shell-") else "task"
    return BuilderRecord(
        id=id,
        type=type,
        branch=tree.branch or f"builder/{id}",
        worktree=str(tree.path),
        session=farm.paths.session(id),
        runtime=farm.settings.text("spawn.runtime") or "claude-code",
        model=None,
        base=head.branch or head.commit,
        base_commit=head.commit,
        prompt_file=None,
        role=None,
        task_text=None,
        protocol_name=None,
        protocol_args=None,
        spec=None,
        files=(),
        ports=reserve_ports(farm.root, id, farm.settings.number("ports.per_builder")),
        conversation_id=None,
        created_at=datetime.now(UTC).isoformat(timespec="seconds"),
        state="stopped",
        reason="found by af doctor",
        run=draw_run(),
        socket=farm.tmux.path(os.environ),
        permissions=farm.settings.text("spawn.permissions") or "edit",
        subdirectory="",
        new_branch=(tree.branch or "").startswith("builder/"),
        ephemeral=False,
    )


def check_unknown_sessions(farm: Farm) -> Iterator[Finding]:
    panes = farm.tmux.panes().panes
    sessions = {record.session for record in farm.registry.read().values()}  # last, as above
    prefix = f"af-{farm.paths.farm_name}-"
    for name, pane in panes.items():
        if name.startswith(prefix) and name not in sessions:
            yield Finding(
                "problem",
                f"the tmux session {name} belongs to no builder",
                heal=partial(_end, farm, name, pane.session_id),
            )


def _end(farm: Farm, name: str, session: str) -> str:
    farm.tmux.kill_session(session)
    return f"{name} is ended"


def check_writes_outside(farm: Farm) -> Iterator[Finding]:
    """Files of the main checkout that a builder's runtime reported to have written."""
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
