"""The last step of a landing: files, branch and index of a checkout move together, or none of them does."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Unpack

from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import Change, changes_between, kind_on_disk
from agent_farm.git.git_process import Options
from agent_farm.git.index_lock import locked_index
from agent_farm.git.settling import Move, copy_index, forget_move, next_index, settle, write_move
from agent_farm.launch import as_command
from agent_farm.shield import Shield


class MergeRefused(AgentFarmError):
    """The move was refused before anything changed; the evidence names the files in the way."""

    code = "merge-refused"


class HeadMoved(MergeRefused):
    """Somebody committed or switched branches in the meantime: the prepared move no longer applies."""


def advance(
    checkout: Checkout, move: Move, *, hooks: Path | None, fds: Sequence[int], shield: Shield
) -> None:
    """Make the move; uncommitted changes stay.

    The caller holds the lock for landings, and git inherits it (`fds`). What is about to happen is written
    down first, so that `settle_interrupted_move` can undo or finish it after a kill. `hooks` is the
    directory of the repository's own hooks; its `reference-transaction` may refuse the move.
    """
    changes = changes_between(checkout, move.before, move.after)
    settled = True
    try:
        write_move(checkout, move)
        with locked_index(checkout, move.mark):
            copy_index(checkout)
            _require_untouched(checkout, move, changes)
            shield.hold()
            try:
                _move(checkout, move, hooks, fds)
            except BaseException as error:
                settled = False
                done = settle(checkout, move)
                settled = True
                if not done.landed:
                    raise
                if not isinstance(error, AgentFarmError | OSError):
                    raise
    finally:
        if settled:
            forget_move(checkout)


def _require_untouched(checkout: Checkout, move: Move, changes: Mapping[str, Change]) -> None:
    """Raise unless the checkout is where it was, nothing is under way, and no file is in the way."""
    # refreshes the copy of the index: a file that was only touched is no change
    env = {"GIT_INDEX_FILE": os.fspath(next_index(checkout)), "GIT_OPTIONAL_LOCKS": "1"}
    state = tree_state(checkout, each_file=True, env=env)
    if (state.branch, state.head) != (move.branch, move.before):
        raise HeadMoved(f"{checkout.path} is no longer on {move.branch} at {move.before[:12]}")
    status = as_command("git", "-C", checkout.path, "status")
    if state.operation is not None:
        raise MergeRefused(f"A {state.operation} is in progress in {checkout.path}", hint=status)
    dirty = {*state.dirty, *state.untracked}
    both = sorted({path for path in changes if path in dirty} | set(_in_the_way(checkout, changes)))
    if both:
        raise MergeRefused(
            f"{checkout.path} has uncommitted changes in files that the merge writes",
            evidence=both,
            hint=status,
        )


def _in_the_way(checkout: Checkout, changes: Mapping[str, Change]) -> list[str]:
    """Files that no commit has (ignored ones included) where the merge adds one."""
    gone = {path for path, change in changes.items() if change.after is None}
    found = []
    for path, (before, after) in changes.items():
        if before is not None or after is None:
            continue
        kind = kind_on_disk(checkout, path)
        if kind == "directory":
            if not after.is_submodule:
                found += [file for file in _files_below(checkout, path) if file not in gone]
        elif kind == "blocked":
            parts = path.split("/")
            if not any("/".join(parts[:length]) in gone for length in range(1, len(parts))):
                found.append(path)
        elif kind != "nothing":
            found.append(path)
    return found


def _files_below(checkout: Checkout, directory: str) -> Iterator[str]:
    for where, _, names in os.walk(checkout.path / directory):
        inside = os.path.relpath(where, checkout.path)
        yield from (f"{inside}/{name}" for name in names)


def _move(checkout: Checkout, move: Move, hooks: Path | None, fds: Sequence[int]) -> None:
    env = {"GIT_INDEX_FILE": os.fspath(next_index(checkout))}
    _run(checkout, "read-tree", "-m", "-u", move.before, move.after, env=env, pass_fds=fds)
    branch = f"refs/heads/{move.branch}"
    given = f"update ORIG_HEAD {move.before}\nupdate {branch} {move.after} {move.before}\n"
    own = ("-c", f"core.hooksPath={hooks or os.devnull}")
    _run(checkout, *own, "update-ref", "-m", f"merge {move.what}", "--stdin", input=given, pass_fds=fds)
    os.replace(next_index(checkout), checkout.index)


def _run(checkout: Checkout, *args: str, **options: Unpack[Options]) -> None:
    options["apart"] = True
    status, _, stderr = checkout.ask(*args, **options)
    if status == 0:
        return
    lines = stderr.decode("utf-8", "replace").splitlines()
    full = any("No space left on device" in line for line in lines)
    command = ("df", "-h", checkout.path) if full else ("git", "-C", checkout.path, "status")
    said = next((line.strip() for line in lines if line.strip()), f"git {args[0]}: status {status}")
    raise MergeRefused(
        f"git could not update {checkout.path}",
        why=said.removeprefix("error: ").removeprefix("fatal: "),
        evidence=[line.strip() for line in lines if line.startswith("\t")],
        hint=as_command(*command),
    )
