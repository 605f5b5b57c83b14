"""`diff`: what a builder has changed since it began, in what its worktree has checked out."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import NotFound
from agent_farm.git.checkout import CheckedOut
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import git_deadline
from agent_farm.git.remotes import find_base
from agent_farm.git.showing import diff_commits, diff_worktree, start_of_work
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request

# Far more than git needs; a FIFO named `.gitignore` would make it wait for ever.
_SECONDS = 120.0


class Diff(Request):
    id: BuilderId
    stat: Annotated[bool, Meta(description="Only list the changed files, and how much changed")] = False
    committed: Annotated[bool, Meta(description="Leave out what is uncommitted or untracked")] = False
    colors: Annotated[bool, Meta(description="Colour it as git does on a terminal")] = False
    most: Annotated[int, Meta(ge=0, description="Maximum length of the text in characters; 0: all of it")] = 0


class Difference(Answer):
    """`branch` and `commit` are what is checked out; `branch` is null when HEAD is detached.

    `own_branch` is the builder's.
    `files`, `added` and `deleted` count the whole diff even if the text was cut; they are null with
    `stat` or `colors`.
    """

    id: str
    diff: str
    truncated: bool
    base: str
    branch: str | None
    own_branch: str
    commit: str
    files: int | None
    added: int | None
    deleted: int | None


@reads(
    "Show what a builder changed since it began, uncommitted and untracked files included",
    pool="diff",
    details="What it merged in from its base is left out. Without a worktree, the diff is that of the"
    " builder's branch.",
    elsewhere="there",
)
def diff(context: Context, request: Diff) -> Difference:
    farm = context.farm
    record = choose(context, request.id)
    record.require_begun()
    repository = farm.repository
    with git_deadline(_SECONDS):
        tree = farm.tree_if_there(record)
        out = tree.checked_out() if tree else CheckedOut(record.branch, None)
        tip = resolve_commits(repository, [out.name])[out.name]
        if tip is None:
            raise _no_commit(record, out)
        bases = find_base(repository, record.base).refs
        start = start_of_work(repository, record.base_commit, tip, bases)
        if tree is None or request.committed:
            text = diff_commits(repository, start, tip, stat=request.stat, color=request.colors)
        else:
            text = diff_worktree(tree, start, stat=request.stat, color=request.colors)
    shown = _cut(text, request.most)
    files, added, deleted = (None,) * 3 if request.stat or request.colors else count_changes(text)
    return Difference(
        id=record.id,
        diff=shown,
        truncated=len(shown) < len(text),
        base=record.base,
        branch=out.branch,
        own_branch=record.branch,
        commit=tip,
        files=files,
        added=added,
        deleted=deleted,
    )


def _no_commit(record: BuilderRecord, out: CheckedOut) -> NotFound:
    if out.branch == record.branch:
        return NotFound(f"There is no branch {record.branch}", hint="af doctor")
    switch = as_command("git", "-C", record.worktree, "switch", record.branch)
    return NotFound(f"{record.id} has {out.branch} checked out, which has no commit", hint=switch)


def _cut(text: str, most: int) -> str:
    """The text in whole lines, with at most `most` characters."""
    return text if not most or len(text) <= most else text[: text.rfind("\n", 0, most) + 1]


def count_changes(diff: str) -> tuple[int, int, int]:
    """Files, added lines and deleted lines."""
    files = added = deleted = 0
    in_hunk = False
    for line in diff.split("\n"):
        if line.startswith("diff --git "):
            files, in_hunk = files + 1, False
        elif line.startswith("@@"):
            in_hunk = True
        elif in_hunk:
            added += line.startswith("+")
            deleted += line.startswith("-")
    return files, added, deleted
