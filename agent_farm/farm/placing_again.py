"""Makes a builder from a checkpoint: branch, worktree with uncommitted changes, journal and conversation.

It is recorded as `creating` until it is complete, then as `stopped`, or as `failed` if its start had failed;
the caller starts it.
"""

from __future__ import annotations

import json
import os
from contextlib import suppress
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord, draw_run
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.farm.about_checkpoint import About, about_of
from agent_farm.farm.farm import Farm
from agent_farm.farm.guarded_removal import Waived, prune_several
from agent_farm.farm.healing import remove_traces
from agent_farm.farm.locks import lock_of
from agent_farm.farm.own_events import note
from agent_farm.farm.removal import settle_alone
from agent_farm.farm.trash import begun_removals
from agent_farm.git.checkout import linked_tree
from agent_farm.git.checkpoint_reading import Checkpoint, read_checkpoint, read_file
from agent_farm.git.git_process import git_environment
from agent_farm.git.other_machine import move_branch
from agent_farm.git.worktrees import add_worktree
from agent_farm.ports import reserve_ports
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.conversation_files import lay_files

_RUN_FILES = ("prompt.md", "role.md", "events.jsonl", "usage.json", "usage.jsonl", "answer.json")
_BEGUN = ("preparing", "creating")


def place_again(
    farm: Farm, told: BuilderRecord, ref: str, *, most_bytes: int, why: str
) -> tuple[BuilderRecord, bool]:
    """The builder, and whether to start its runtime: not if it had ended, or its conversation is missing.

    What an earlier builder with that id left here goes to the trash.
    """
    found = read_checkpoint(farm.repository, ref, most_bytes=most_bytes)
    about = about_of(found, told.id)
    _put_earlier_away(farm, told.id)
    with lock_of(farm, told.id) as lock:
        tip = about.tip or found.parents[0]
        if (now := farm.repository.branch_commit(told.branch)) is not None:
            move_branch(farm.repository, told.branch, tip, now)
        record = _announce(farm, told, found)
        try:
            _make_worktree(farm, record, tip, lock)
            _fill(farm, record, found, about)
            has_conversation = _lay_run(farm, record, found, about)
        except BaseException:
            with suppress(AgentFarmError, OSError):
                remove_traces(farm, record)
            raise
        record = record.with_state("failed" if about.start_failed else "stopped", about.start_failed or why)
        record = farm.registry.put(replace(record, new_branch=True))
        note(farm, record, "placed again")
    ended = about.state in ("exited", "stopped", "failed")
    begins = record.prompt_file is None or about.state in _BEGUN
    return record, not ended and (has_conversation or begins)


def _put_earlier_away(farm: Farm, id: str) -> None:
    """Keeps what was found out about its work here, which applies to the new one, too."""
    for kept in begun_removals(farm, id):  # a full disk can leave one
        settle_alone(farm, kept)
    if id not in farm.records():
        return
    files = {path: path.read_bytes() for path in farm.run(id).of_the_work if path.is_file()}
    for _, gone in prune_several(farm, [id], Waived(True, True, True)):
        if isinstance(gone, AgentFarmError):
            raise gone
    for path, content in files.items():
        make_directory(path.parent)
        replace_file(path, content)


def _announce(farm: Farm, told: BuilderRecord, found: Checkpoint) -> BuilderRecord:
    run = farm.run(told.id)
    has = {name for name in _RUN_FILES if any(path.startswith(f"run/{name}/") for path in found.files)}
    record = replace(
        told,
        worktree=str(farm.paths.worktree(told.id)),
        session=farm.paths.session(told.id),
        prompt_file=str(run.prompt) if "prompt.md" in has else None,
        role=str(run.role) if "role.md" in has else None,
        ports=(),
        run=draw_run(),
        socket=farm.tmux.path(os.environ),
        created_at=datetime.now(UTC).isoformat(timespec="microseconds"),  # unlike one in the trash
        state="creating",
        reason=None,
        new_branch=False,  # until it is complete, so that undoing it leaves the branch alone
        after=None,
        stack=None,
    )
    with farm.registry.edit() as records:
        if told.id in records.ids:
            raise AgentFarmError(f"There is a builder {told.id} here", hint=f"af status {told.id}")
        ports = reserve_ports(farm.root, told.id, farm.settings.number("ports.per_builder"))
        records[told.id] = record = replace(record, ports=ports)
    return record


def _make_worktree(farm: Farm, record: BuilderRecord, tip: str, lock: int) -> None:
    add_worktree(
        farm.repository,
        record.worktree_path,
        record.branch,
        tip,
        lock_path=farm.paths.worktree_lock,
        builder_lock_fd=lock,
        new_branch=farm.repository.branch_commit(record.branch) is None,
        sparse=record.sparse,
    )


def _fill(farm: Farm, record: BuilderRecord, found: Checkpoint, about: About) -> None:
    """Restore the files, committed or not, and the index."""
    tree, head = linked_tree(farm.repository, record.worktree_path), found.parents[0]
    if about.branch != record.branch or head != (about.tip or head):
        tree.run("update-ref", "--no-deref", "-m", "af recover", "HEAD", head)
    tree.run("read-tree", "--reset", "-u", found.work, base=git_environment())
    tree.run("read-tree", found.index or f"{head}^{{tree}}")
    tree.run("update-index", "-q", "--refresh", ok=(0, 1))


def _lay_run(farm: Farm, record: BuilderRecord, found: Checkpoint, about: About) -> bool:
    """Write journal, prompt and conversation; returns whether there is a conversation to continue."""
    run = farm.run(record.id)
    make_directory(run.directory)
    talk = _talk(farm, found) if about.conversation else {}
    if talk:
        with suppress(ValueError):
            cli = get_adapter(record.runtime, farm.root).cli
            cwd = record.worktree_path / record.subdirectory
            lay_files(cli, about.conversation or "", talk, private=run.directory, env=os.environ, cwd=cwd)
    for name in _RUN_FILES:
        if content := read_file(farm.repository, found, f"run/{name}"):
            if name == "events.jsonl" and not talk:
                content = _without_conversation(content)
            replace_file(run.directory / name, content)
    return bool(talk)


def _talk(farm: Farm, found: Checkpoint) -> dict[str, bytes]:
    names = dict.fromkeys(path.rpartition("/")[0] for path in found.files if path.startswith("talk/"))
    return {name.removeprefix("talk/"): read_file(farm.repository, found, name) for name in names}


def _without_conversation(journal: bytes) -> bytes:
    """The journal without the conversation, which did not come along and cannot be resumed."""
    lines = []
    for line in journal.splitlines():
        with suppress(ValueError, RecursionError):
            event: Any = json.loads(line)
            if isinstance(event, dict) and event.pop("conversation_id", None) is not None:
                line = json.dumps(event).encode()
        lines.append(line + b"\n")
    return b"".join(lines)
