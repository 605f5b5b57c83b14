"""Lands work on a checkout's branch: makes the commit in the object store, then moves everything in one step.

Before that step nothing that a person can see has changed, so a refusal leaves everything as it was.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Literal

from msgspec import Struct

from agent_farm.git.advancing import HeadMoved, MergeRefused, advance
from agent_farm.git.checkout import Checkout, Head
from agent_farm.git.divergence import parents_of
from agent_farm.git.git_process import GitError, ask_git, run_git, run_git_bytes
from agent_farm.git.landing_hooks import Hooks
from agent_farm.git.merge_trees import loose_commit, merged_trees
from agent_farm.git.repository import Repository
from agent_farm.git.settling import Move
from agent_farm.launch import as_command
from agent_farm.shield import Shield

_TRIES = 20

Strategy = Literal["merge", "squash", "rebase", "ff"]


class MergeConflicts(MergeRefused):
    """The evidence names the files that git could not merge by itself."""


def on_no_branch(checkout: Path) -> MergeRefused:
    """The error when there is no branch to land on."""
    return MergeRefused(
        f"{checkout} is on no branch",
        why="Work lands on the branch that is checked out there.",
        hint=as_command("git", "-C", checkout, "switch") + " BRANCH",
    )


class NoFastForward(MergeRefused):
    """Both branches have commits that the other lacks."""


class Merged(Struct, frozen=True):
    """The checkout's branch before and after; both are equal if there was nothing to merge."""

    into: str
    before: str
    after: str


class Work(Struct, frozen=True):
    """What is landed: `tip`, shown as `name`; `subject` and `trailer` are for the commit that lands it."""

    tip: str
    name: str
    subject: str
    trailer: str = ""


class Review:
    """Looks at what is about to land; each method may change what it gets, or refuse by raising."""

    def tree(self, head: str, tip: str, tree: str, strategy: Strategy) -> str:
        """Review the tree that is about to be committed."""
        return tree

    def message(self, text: bytes, strategy: Strategy) -> bytes:
        return text

    def commit(self, before: str, after: str) -> None:
        """Review the commit that the branch is about to move to."""


def merge_commit(
    repository: Repository,
    checkout: Checkout,
    work: Work,
    strategy: Strategy,
    message: str | None = None,
    *,
    shield: Shield,
    head: Head | None = None,
    hooks: Hooks | None = None,
    review: Review | None = None,
    fds: Sequence[int] = (),
) -> Merged:
    """Merge `work` into the branch of a checkout, whose own uncommitted changes stay.

    Refused if it would conflict, or touch a file with uncommitted changes. The work's own branch is not
    changed, not even by `rebase`, which copies its commits. The caller holds the lock for landings, which git
    inherits as one of `fds`. `head` is what was checked out a moment ago.
    """
    review = review or Review()
    making = Making(repository, work, strategy, message, review, hooks is not None and hooks.signs)
    for _ in range(_TRIES):
        now = head or checkout.head()
        if now.branch is None:
            raise on_no_branch(checkout.path)
        merged = Merged(now.branch, now.commit, making.after(now.commit))
        if merged.before == merged.after:
            return merged
        review.commit(merged.before, merged.after)
        move = Move(work.name, merged.into, merged.before, merged.after)
        directory = hooks.directory if hooks else None
        try:
            advance(checkout, move, hooks=directory, fds=fds, shield=shield)
        except HeadMoved:
            head = None
        else:
            return merged
    raise MergeRefused(
        f"{checkout.path} got another commit each time {work.name} was about to land on it",
        why=f"Nothing was merged; it was tried {_TRIES} times.",
    )


def replay(repository: Repository, work: Work, onto: str, since: Sequence[str]) -> str:
    """Copy the commits that none of `since` contains onto `onto`; returns the new tip, or raises
    MergeConflicts.

    Work that already contains `onto` is returned unchanged.
    """
    making = Making(repository, work, "rebase", None, Review(), signed=False)
    return work.tip if making.contains(work.tip, onto) else making.replayed(onto, *since)


class Making(Struct, frozen=True):
    """Makes the commit that a branch is to move to, in the object store."""

    repository: Repository
    work: Work
    strategy: Strategy
    text: str | None
    review: Review
    signed: bool

    def after(self, head: str) -> str:
        """The commit to move to; `head` itself if there is nothing to merge."""
        tip = self.work.tip
        if self.contains(head, tip):
            return head
        if self.strategy == "ff":
            if not self.contains(tip, head):
                raise NoFastForward(
                    f"The branch has moved on: it cannot be fast-forwarded to {self.work.name}",
                    why="Both have commits of their own.",
                )
            return tip
        if self.strategy == "rebase":
            return self.replayed(head)
        tree = self.merged_tree(head, tip)
        if self.strategy == "squash" and tree == self.tree_of(head):
            return head
        tree = self.review.tree(head, tip, tree, self.strategy)
        text = (self.text or self.default_message(head)).rstrip() + "\n"
        message = self.review.message(text.encode("utf-8", "surrogateescape"), self.strategy)
        return self.commit(tree, [head] if self.strategy == "squash" else [head, tip], message)

    def default_message(self, head: str) -> str:
        commits = ""
        if self.strategy == "squash":
            told = ("log", "--reverse", "--no-merges", "--format=* %s", f"{head}..{self.work.tip}", "--")
            commits = run_git(self.repository.root, *told).strip()
        return "\n\n".join(part for part in (self.work.subject, commits, self.work.trailer) if part)

    def merged_tree(self, one: str, other: str) -> str:
        result = merged_trees(self.repository, [(one, other)])[0]
        if result.conflicts:
            what = f"{self.work.name} conflicts with the branch it should land on"
            raise MergeConflicts(what, evidence=result.conflicts)
        return result.tree

    def replayed(self, head: str, *since: str) -> str:
        """Copy the work's commits onto `head`, without those in `since` and those whose change is there."""
        order = ("--reverse", "--topo-order")
        current, current_tree = head, self.tree_of(head)
        for commit, parents in parents_of(self.repository, [self.work.tip], [head, *since], *order).items():
            if len(parents) > 1:
                self._require_only_merging(commit, parents)
                continue
            if not parents:
                raise MergeRefused(
                    f"{self.work.name} has a commit without a parent", why="It cannot be rebased."
                )
            tree = self.merged_tree(loose_commit(self.repository, current_tree, parents[0]), commit)
            if tree != current_tree:
                current, current_tree = self.copied(commit, tree, current), tree
        return current

    def _require_only_merging(self, commit: str, parents: Sequence[str]) -> None:
        """Raise unless the merge commit is just what merging its parents gives: a rebase loses any more."""
        made, conflicts = parents[0], False
        for parent in parents[1:]:
            result = merged_trees(self.repository, [(made, parent)])[0]
            conflicts = conflicts or bool(result.conflicts)
            made = loose_commit(self.repository, result.tree, made, parent)
        if conflicts or self.tree_of(made) != self.tree_of(commit):
            raise MergeRefused(
                f"The merge commit {commit[:12]} in {self.work.name} holds changes of its own",
                why="A rebase does not copy merge commits and would lose them. Landing by merge or squash"
                " keeps them.",
                hint=as_command("git", "show", "--remerge-diff", commit[:12]),
            )

    def copied(self, commit: str, tree: str, parent: str, trailer: str = "") -> str:
        """A commit with the same author, date and message, but another tree and parent, and `trailer`."""
        told = ("log", "-1", "--encoding=UTF-8", "--date=raw", "--format=%an%x00%ae%x00%ad%x00%B", commit)
        name, email, date, text = run_git_bytes(self.repository.root, *told, "--").split(b"\0", 3)
        facts = {"NAME": name, "EMAIL": email, "DATE": b"@" + date}
        author = {f"GIT_AUTHOR_{fact}": os.fsdecode(value) for fact, value in facts.items()}
        message = b"\n\n".join(part for part in (text.rstrip(b"\n"), os.fsencode(trailer)) if part)
        return self.commit(tree, [parent], message + b"\n", author)

    def commit(
        self, tree: str, parents: Sequence[str], message: bytes, author: Mapping[str, str] | None = None
    ) -> str:
        given = [word for parent in parents for word in ("-p", parent)]
        if self.signed:  # unlike `git commit`, `commit-tree` ignores commit.gpgSign
            given.append("-S")
        whole = ("-c", "i18n.commitEncoding=utf-8", "commit-tree", tree, *given)
        return run_git(self.repository.root, *whole, input=message, env=author).strip()

    def contains(self, commit: str, ancestor: str) -> bool:
        question = ("merge-base", "--is-ancestor", ancestor, commit)
        status, _, stderr = ask_git(self.repository.root, *question)
        if status > 1:
            raise GitError("The history cannot be read", why=stderr.decode("utf-8", "replace").strip())
        return status == 0

    def tree_of(self, commit: str) -> str:
        return run_git(self.repository.root, "rev-parse", f"{commit}^{{tree}}").strip()

    def parent_of(self, commit: str) -> str:
        return run_git(self.repository.root, "rev-parse", f"{commit}^").strip()
