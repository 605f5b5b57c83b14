"""Landing a branch on a checkout's branch: made in the object store, then taken over in one step.

Until the last step nothing that a person can see has changed, so a refusal leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

from agent_farm.git.advancing import HeadMoved, MergeRefused, Step, advance
from agent_farm.git.checkout import Checkout, Head
from agent_farm.git.git_process import GitError, ask_git, run_git, run_git_bytes
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.repository import Repository
from agent_farm.launch import as_command
from agent_farm.shield import Shield

_TRIES = 20

Strategy = Literal["merge", "squash", "rebase", "ff"]


class MergeConflicts(MergeRefused):
    """The evidence names the files that git could not merge by itself."""


class NoFastForward(MergeRefused):
    """Both sides have commits of their own."""


@dataclass(frozen=True, slots=True)
class Merged:
    """The checkout's branch, before and after; equal when there was nothing to merge."""

    into: str
    before: str
    after: str


@dataclass(frozen=True, slots=True)
class Work:
    """What is to land: `tip`, called `name`; `subject` and `trailer` are for the commit that lands it."""

    tip: str
    name: str
    subject: str
    trailer: str = ""


class Review:
    """Who has a say before anything lands; each may change what it is given, or refuse."""

    def tree(self, head: str, tip: str, tree: str, strategy: Strategy) -> str:
        """The tree that is about to be committed."""
        return tree

    def message(self, text: bytes, strategy: Strategy) -> bytes:
        return text

    def commit(self, before: str, after: str) -> None:
        """What the branch is about to move to."""


def merge_commit(
    repository: Repository,
    checkout: Checkout,
    work: Work,
    strategy: Strategy,
    message: str | None = None,
    *,
    head: Head | None = None,
    signed: bool = False,
    review: Review | None = None,
    hooks: Path | None = None,
    fds: Sequence[int] = (),
    shield: Shield | None = None,
) -> Merged:
    """Bring `work` into the branch of a checkout, whose own uncommitted changes stay.

    Refused when it would conflict, or would touch a file that has uncommitted changes. The work's own branch
    stays as it is, also with `rebase`, which copies its commits. Whoever calls this holds the lock of
    landings, which git is given as one of `fds`. `head` is what was checked out a moment ago.
    """
    making = _Making(repository, checkout, work, strategy, message, review or Review(), signed)
    found = head
    for _ in range(_TRIES):
        head, found = found or checkout.head(), None
        if head.branch is None:
            raise MergeRefused(
                f"{checkout.path} is on no branch", hint=as_command("git", "-C", checkout.path, "branch")
            )
        if _contains(repository, head.commit, work.tip):
            return Merged(head.branch, head.commit, head.commit)
        after = making.after(head.commit)
        if after == head.commit:
            return Merged(head.branch, head.commit, after)
        making.review.commit(head.commit, after)
        last = Step(head.branch, head.commit, after, what=work.name)
        try:
            advance(checkout, last, hooks=hooks, fds=fds, shield=shield or Shield())
        except HeadMoved:
            continue
        return Merged(head.branch, head.commit, after)
    raise MergeRefused(
        f"{checkout.path} got another commit each time {work.name} was about to land on it",
        why=f"Nothing was merged; it was tried {_TRIES} times.",
    )


@dataclass(frozen=True, slots=True)
class _Making:
    """The commit that a branch is to move to, made in the object store."""

    repository: Repository
    checkout: Checkout
    work: Work
    strategy: Strategy
    text: str | None
    review: Review
    signed: bool

    def after(self, head: str) -> str:
        repository, work = self.repository, self.work
        if self.strategy == "ff":
            if not _contains(repository, work.tip, head):
                raise NoFastForward(
                    f"The branch has moved on: it cannot be fast-forwarded to {work.name}",
                    why="Both have commits of their own.",
                )
            return work.tip
        if self.strategy == "rebase":
            return _replayed(repository, head, work.tip, work.name, self.signed)
        tree = _merged_tree(repository, head, work.tip, work.name)
        if self.strategy == "squash" and tree == _tree(repository, head):
            return head
        tree = self.review.tree(head, work.tip, tree, self.strategy)
        text = (self.text or self._default(head)).rstrip() + "\n"
        message = self.review.message(text.encode("utf-8", "surrogateescape"), self.strategy)
        parents = [head] if self.strategy == "squash" else [head, work.tip]
        return _commit(repository, tree, parents, message, signed=self.signed)

    def _default(self, head: str) -> str:
        commits = _subjects(self.repository, head, self.work.tip) if self.strategy == "squash" else ""
        parts = (self.work.subject, commits.strip(), self.work.trailer)
        return "\n\n".join(part for part in parts if part) + "\n"


def _merged_tree(repository: Repository, one: str, other: str, branch: str) -> str:
    result = merged_trees(repository, [(one, other)])[0]
    if result.conflicts:
        raise MergeConflicts(f"{branch} conflicts with what it is to land on", evidence=result.conflicts)
    return result.tree


def _replayed(repository: Repository, head: str, tip: str, branch: str, signed: bool) -> str:
    """The branch's commits copied onto `head`; the ones whose change is there already are left out."""
    commits = run_git(
        repository.root, "rev-list", "--reverse", "--topo-order", "--no-merges", f"{head}..{tip}"
    ).split()
    current = head
    for commit in commits:
        parent = run_git(repository.root, "rev-parse", "--verify", "--quiet", f"{commit}^", ok=(0, 1)).strip()
        if not parent:
            raise MergeRefused(f"{branch} has a commit without a parent", why="It cannot be rebased.")
        # With the original's parent as its only one, a merge of this commit is a pick of the original.
        here = _commit(repository, _tree(repository, current), [parent], b"replay\n")
        tree = _merged_tree(repository, here, commit, branch)
        if tree != _tree(repository, current):
            current = _copied(repository, commit, tree, current, signed)
    return current


def _copied(repository: Repository, commit: str, tree: str, parent: str, signed: bool) -> str:
    """The same author, date and message over another tree."""
    facts = run_git(repository.root, "log", "-1", "--format=%an%x00%ae%x00%ad", "--date=raw", commit, "--")
    name, email, date = facts.rstrip("\n").split("\0")
    raw = run_git_bytes(repository.root, "log", "-1", "--encoding=UTF-8", "--format=%B", commit, "--")
    author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": f"@{date}"}
    return _commit(repository, tree, [parent], raw.rstrip(b"\n") + b"\n", author=author, signed=signed)


def _commit(
    repository: Repository,
    tree: str,
    parents: Sequence[str],
    message: bytes,
    *,
    author: dict[str, str] | None = None,
    signed: bool = False,
) -> str:
    arguments = [argument for parent in parents for argument in ("-p", parent)]
    if signed:  # unlike `git commit`, `commit-tree` does not look into the settings
        arguments.append("-S")
    plain = ("-c", "i18n.commitEncoding=utf-8")
    return run_git(
        repository.root, *plain, "commit-tree", tree, *arguments, input=message, env=author
    ).strip()


def _subjects(repository: Repository, head: str, tip: str) -> str:
    return run_git(
        repository.root, "log", "--reverse", "--no-merges", "--format=* %s", f"{head}..{tip}", "--"
    )


def _contains(repository: Repository, commit: str, ancestor: str) -> bool:
    status, _, stderr = ask_git(repository.root, "merge-base", "--is-ancestor", ancestor, commit)
    if status > 1:
        raise GitError("The history cannot be read", why=stderr.decode("utf-8", "replace").strip())
    return status == 0


def _tree(repository: Repository, commit: str) -> str:
    return run_git(repository.root, "rev-parse", f"{commit}^{{tree}}").strip()
