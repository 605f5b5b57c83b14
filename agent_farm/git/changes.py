"""What differs between a checkout and its commit."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.git.checkout import Checkout
from agent_farm.git.git_process import paths_of, with_warnings

Operation = Literal["rebase", "am", "merge", "cherry-pick", "revert", "bisect"]

_OPERATIONS: tuple[tuple[str, Operation], ...] = (
    ("rebase-merge", "rebase"),
    ("rebase-apply/applying", "am"),
    ("rebase-apply", "rebase"),
    ("MERGE_HEAD", "merge"),
    ("CHERRY_PICK_HEAD", "cherry-pick"),
    ("REVERT_HEAD", "revert"),
    ("sequencer", "cherry-pick"),
    ("BISECT_LOG", "bisect"),
)


STATUS = ("--porcelain=v2", "-z", "--branch", "--no-renames", "--no-ahead-behind")


class TreeState(Struct, frozen=True):
    """What `git status` says of a checkout. `head` is None before the first commit, `branch` when detached.

    `ignored` lists ignored files and directories, if they were asked for.
    `unread` holds git's warnings: about a directory it may not read, for example, and so says nothing about.
    """

    dirty: tuple[str, ...]
    untracked: tuple[str, ...]
    head: str | None
    branch: str | None
    operation: Operation | None = None
    unread: tuple[str, ...] = ()
    ignored: tuple[str, ...] = ()

    @property
    def clean(self) -> bool:
        return not (self.dirty or self.untracked or self.unread) and self.operation is None


def changed_below(where: Checkout, paths: Sequence[str]) -> TreeState:
    """Uncommitted changes in these files and below these directories; every file is named."""
    named = (f":(top,literal){path}" for path in paths)
    return parse_status(where.run("status", *STATUS, "--untracked-files=all", "--", *named))


def tree_state(
    where: Checkout,
    *,
    each_file: bool = False,
    with_ignored: bool = False,
    env: Mapping[str, str] | None = None,
) -> TreeState:
    """Tracked paths that differ from HEAD, and untracked ones (whole directories, unless `each_file`)."""
    files = "--untracked-files=all" if each_file else "--untracked-files=normal"
    ignored = ("--ignored=traditional",) if with_ignored else ()
    question = ("status", *STATUS, files, *ignored)
    output, warnings = with_warnings(question, where.ask(*question, env=env))
    return replace(parse_status(output), operation=operation_of(where), unread=warnings)


def operation_of(where: Checkout) -> Operation | None:
    """The operation, such as a rebase, that was begun there and has not ended."""
    return next((name for file, name in _OPERATIONS if os.path.lexists(where.git_dir / file)), None)


def parse_status(output: str) -> TreeState:
    """Parse the output of `git status` with `STATUS`, which does not say what operation is under way."""
    facts: dict[str, str] = {}
    dirty, untracked, ignored = [], [], []
    for entry in paths_of(output):
        kind, _, rest = entry.partition(" ")
        if kind == "#":
            name, _, value = rest.partition(" ")
            facts[name] = value
        elif kind == "?":
            untracked.append(rest)
        elif kind == "!":
            ignored.append(rest)
        elif kind == "1":
            dirty.append(rest.split(" ", 7)[7])
        elif kind == "u":
            dirty.append(rest.split(" ", 9)[9])
    head, branch = facts.get("branch.oid", "(initial)"), facts.get("branch.head", "(detached)")
    return TreeState(
        dirty=tuple(dirty),
        untracked=tuple(untracked),
        head=None if head == "(initial)" else head,
        branch=None if branch == "(detached)" else branch,
        ignored=tuple(ignored),
    )
