"""The last step of a landing: files, branch and index of a checkout move together, or none of them does."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Unpack

from agent_farm.disk import cannot_write
from agent_farm.errors import AgentFarmError
from agent_farm.git.changes import TreeState, tree_state
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import Change, changes_between, kind_on_disk
from agent_farm.git.git_process import Options
from agent_farm.git.index_lock import locked_index, new_mark
from agent_farm.git.settling import (
    INDEX_SECONDS,
    Move,
    copy_index,
    forget_move,
    next_index,
    settle,
    write_move,
)
from agent_farm.launch import as_command
from agent_farm.shield import Shield


class MergeRefused(AgentFarmError):
    """Nothing was changed; the evidence names files."""

    code = "merge-refused"


class HeadMoved(MergeRefused):
    """Somebody committed or switched meanwhile: what was prepared fits no more."""


@dataclass(frozen=True, slots=True)
class Step:
    """`branch`, which is checked out, is to move from `before` to `after`; `what` lands."""

    branch: str
    before: str
    after: str
    what: str


def advance(
    checkout: Checkout, step: Step, *, hooks: Path | None, fds: Sequence[int], shield: Shield
) -> None:
    """Take the step; uncommitted changes stay.

    Whoever calls this holds the lock of landings, and git holds it too (`fds`). What is written first says
    what is begun, so that a kill leaves nothing that `settle_interrupted` could not settle. `hooks` holds the
    repository's own, of which a `reference-transaction` may refuse.
    """
    changes = changes_between(checkout, step.before, step.after)
    move = Move(new_mark(), step.what, step.branch, step.before, step.after)
    settled = True
    try:
        write_move(checkout, move)
        with locked_index(checkout, move.mark, wait=INDEX_SECONDS):
            _copy_index(checkout)
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
    """It is where it was, with nothing under way, and nothing of anybody's where the merge writes."""
    state = _look_at(checkout)
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
    """Files that no commit has, ignored ones too, where the merge adds one."""
    gone = {path for path, change in changes.items() if change.after is None}
    found = []
    for path, (before, after) in changes.items():
        if before is not None or after is None:
            continue
        kind = kind_on_disk(checkout, path)
        if kind == "directory":
            found += [] if after.is_submodule else _others_in(checkout, path, gone)
        elif kind == "blocked":
            parts = path.split("/")
            if not any("/".join(parts[:length]) in gone for length in range(1, len(parts))):
                found.append(path)
        elif kind != "nothing":
            found.append(path)
    return found


def _others_in(checkout: Checkout, directory: str, gone: set[str]) -> list[str]:
    others = []
    for where, _, names in os.walk(checkout.path / directory):
        inside = os.path.relpath(where, checkout.path)
        others += [f"{inside}/{name}" for name in names if f"{inside}/{name}" not in gone]
    return others


def _look_at(checkout: Checkout) -> TreeState:
    """By a copy of the index, which this brings up to date: what was only touched is no change."""
    env = {"GIT_INDEX_FILE": os.fspath(next_index(checkout)), "GIT_OPTIONAL_LOCKS": "1"}
    return tree_state(checkout, each_file=True, env=env)


def _copy_index(checkout: Checkout) -> None:
    try:
        copy_index(checkout)
    except OSError as error:
        raise cannot_write(next_index(checkout), error) from error


def _move(checkout: Checkout, move: Move, hooks: Path | None, fds: Sequence[int]) -> None:
    env = {"GIT_INDEX_FILE": os.fspath(next_index(checkout))}
    _run(checkout, "read-tree", "-m", "-u", move.before, move.after, env=env, pass_fds=fds)
    branch = f"refs/heads/{move.branch}"
    lines = f"update ORIG_HEAD {move.before}\nupdate {branch} {move.after} {move.before}\n"
    given = lines.encode("utf-8", "surrogateescape")
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
    raise MergeRefused(
        f"git could not update {checkout.path}",
        why=next(
            (_without_prefix(line) for line in lines if line.strip()), f"git {args[0]}: status {status}"
        ),
        evidence=[line.strip() for line in lines if line.startswith("\t")],
        hint=as_command(*command),
    )


def _without_prefix(line: str) -> str:
    return line.strip().removeprefix("error: ").removeprefix("fatal: ")
