"""Makes a builder's checkpoint on the machine where it is: worktree, journal and conversation."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import msgspec
from msgspec import Struct

from agent_farm.builders.events import last_conversation, load_events
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.digests import sha256
from agent_farm.disk import read_plain
from agent_farm.documents import load_if_whole, store
from agent_farm.farm.about_checkpoint import About
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Head
from agent_farm.git.checkpoint_making import checkpoint_ref, hold_worktree, is_name, store_checkpoint
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.conversation_files import find_files

MOST_BYTES = 64 * 1024 * 1024  # of one file
_PART = 64 * 1024
RUN_FILES = ("prompt.md", "role.md", "events.jsonl", "usage.json", "usage.jsonl", "answer.json", "exit.json")


class Made(Struct, frozen=True):
    """What the last checkpoint was made of."""

    of: str
    commit: str


def make_checkpoint(
    farm: Farm, record: BuilderRecord, status: Status, tip: str | None, known: str | None
) -> str:
    """The commit: the last one, `known`, if nothing has changed since. `tip` is the tip of its branch."""
    tree = farm.tree(record)
    on_branch = tip is not None and tree.checked_out().branch == record.branch
    head = Head(tip, record.branch) if tip and on_branch else None
    held = hold_worktree(tree, most_bytes=MOST_BYTES, head=head)
    conversation, sources = _sources(farm, record)
    about = About(
        record.id,
        status.state,
        status.cut_short,
        held.branch,
        tip,
        conversation if any(name.startswith("talk/") for name in sources) else None,
        held.left_out[:100],
        (record.reason or "its start failed") if farm.is_half_made(record) else None,
    )
    of = _mark((msgspec.to_builtins(held), msgspec.to_builtins(about), _facts(sources)))
    last = farm.run(record.id).directory / "checkpoint.json"
    made = load_if_whole(last, Made)
    if made is not None and made.of == of and made.commit == known:
        return made.commit
    files = {"about.json": msgspec.json.encode(about)}
    for name, path in sources.items():
        files |= _parts(name, path)
    commit = store_checkpoint(farm.repository, checkpoint_ref(record.id), held, tip, files)
    store(last, Made(of, commit))
    return commit


def _sources(farm: Farm, record: BuilderRecord) -> tuple[str | None, dict[str, Path]]:
    run = farm.run(record.id)
    found = {f"run/{name}": run.directory / name for name in RUN_FILES}
    with suppress(ValueError):  # a runtime that is no longer known here
        cli = get_adapter(record.runtime, farm.root).cli
        conversation = last_conversation(load_events(run.events), cli.hooks.submitted)
        if conversation is not None:
            cwd = record.worktree_path / record.subdirectory
            talk = find_files(cli, conversation, private=run.directory, env=os.environ, cwd=cwd)
            found |= {f"talk/{name}": path for name, path in talk if is_name(name)}
        return conversation, found
    return None, found


def _facts(sources: dict[str, Path]) -> list[tuple[str, int, int]]:
    found = []
    for name, path in sources.items():
        with suppress(OSError):
            facts = path.lstat()
            found.append((name, facts.st_size, facts.st_mtime_ns))
    return found


def _mark(value: object) -> str:
    return sha256(json.dumps(value, default=str).encode("utf-8", "surrogateescape")).hexdigest()


def _parts(name: str, path: Path) -> Iterator[tuple[str, bytes]]:
    """In parts, so that only the end of a growing file is new. A file that is too large is left out."""
    try:
        content = read_plain(path, limit=MOST_BYTES)
    except OSError:
        return
    for at in range(0, max(1, len(content)), _PART):
        yield f"{name}/{at // _PART:06}", content[at : at + _PART]
