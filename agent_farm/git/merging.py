"""Landing a branch on a checkout's branch: made in the object store, then taken over in one step.

Until the last step nothing that a person can see has changed, so a refusal leaves everything as it was.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agent_farm.git.advancing import HeadMoved, MergeRefused, advance
from agent_farm.git.checkouts import Checkout
from agent_farm.git.command import GitError, ask_git, run_git, run_git_bytes
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.repository import Repository
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


def merge_commit(
    repository: Repository,
    checkout: Checkout,
    tip: str,
    branch: str,
    strategy: Strategy,
    message: str | None = None,
    *,
    fds: Sequence[int] = (),
    shield: Shield | None = None,
) -> Merged:
    """Bring `tip`, which is called `branch`, into the branch of a checkout, whose uncommitted changes stay.

    Refused when it would conflict, or would touch a file that has uncommitted changes. `branch` itself stays
    as it is, also with `rebase`, which copies its commits. Whoever calls this holds the lock of landings,
    which git is given as one of `fds`.
    """
    for _ in range(_TRIES):
        head = checkout.head()
        if head.branch is None:
            raise MergeRefused(f"{checkout.path} is on no branch", hint="git switch <branch>")
        if _contains(repository, head.commit, tip):
            return Merged(head.branch, head.commit, head.commit)
        after = _prepared(repository, head.commit, tip, branch, strategy, message)
        if after == head.commit:
            return Merged(head.branch, head.commit, after)
        try:
            advance(
                checkout, head.branch, head.commit, after,
                what=branch, fds=fds, shield=shield or Shield(),
            )  # fmt: skip
        except HeadMoved:
            continue
        return Merged(head.branch, head.commit, after)
    raise MergeRefused(
        f"{checkout.path} got another commit each time {branch} was about to land on it",
        why=f"Nothing was merged; it was tried {_TRIES} times.",
    )


def _prepared(
    repository: Repository, head: str, tip: str, branch: str, strategy: Strategy, message: str | None
) -> str:
    """The commit the main branch is to move to."""
    if strategy == "ff":
        if not _contains(repository, tip, head):
            raise NoFastForward(
                f"{branch} is not ahead of the main checkout's branch alone",
                why="Both have commits of their own, so there is no fast-forward.",
            )
        return tip
    if strategy == "rebase":
        return _replayed(repository, head, tip, branch)
    tree = _merged_tree(repository, head, tip, branch)
    if strategy == "squash":
        if tree == _tree(repository, head):
            return head
        text = message or _squash_message(repository, head, tip, branch)
        return _commit(repository, tree, [head], text.encode("utf-8", "surrogateescape"))
    text = message or f"Merge branch '{branch}'\n"
    return _commit(repository, tree, [head, tip], text.encode("utf-8", "surrogateescape"))


def _merged_tree(repository: Repository, one: str, other: str, branch: str) -> str:
    result = merged_trees(repository, [(one, other)])[0]
    if result.conflicts:
        raise MergeConflicts(f"{branch} conflicts with the main checkout's branch", evidence=result.conflicts)
    return result.tree


def _replayed(repository: Repository, head: str, tip: str, branch: str) -> str:
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
        here = _commit(repository, _tree(repository, current), [parent], b"replay\n", signed=False)
        tree = _merged_tree(repository, here, commit, branch)
        if tree != _tree(repository, current):
            current = _copied(repository, commit, tree, current)
    return current


def _copied(repository: Repository, commit: str, tree: str, parent: str) -> str:
    """The same author, date and message over another tree."""
    facts = run_git(repository.root, "log", "-1", "--format=%an%x00%ae%x00%ad", "--date=raw", commit, "--")
    name, email, date = facts.rstrip("\n").split("\0")
    raw = run_git_bytes(repository.root, "log", "-1", "--encoding=UTF-8", "--format=%B", commit, "--")
    author = {"GIT_AUTHOR_NAME": name, "GIT_AUTHOR_EMAIL": email, "GIT_AUTHOR_DATE": f"@{date}"}
    return _commit(repository, tree, [parent], raw.rstrip(b"\n") + b"\n", author=author)


def _commit(
    repository: Repository,
    tree: str,
    parents: Sequence[str],
    message: bytes,
    *,
    author: dict[str, str] | None = None,
    signed: bool = True,
) -> str:
    arguments = [argument for parent in parents for argument in ("-p", parent)]
    if signed and _signs(repository):  # unlike `git commit`, `commit-tree` does not look this up
        arguments.append("-S")
    plain = ("-c", "i18n.commitEncoding=utf-8")
    return run_git(
        repository.root, *plain, "commit-tree", tree, *arguments, input=message, env=author
    ).strip()


def _signs(repository: Repository) -> bool:
    answer = run_git(repository.root, "config", "--type=bool", "commit.gpgSign", ok=(0, 1))
    return answer.strip() == "true"


def _squash_message(repository: Repository, head: str, tip: str, branch: str) -> str:
    subjects = run_git(
        repository.root, "log", "--reverse", "--no-merges", "--format=* %s", f"{head}..{tip}", "--"
    )
    return f"Squash {branch}\n\n{subjects}"


def _contains(repository: Repository, commit: str, ancestor: str) -> bool:
    status, _, stderr = ask_git(repository.root, "merge-base", "--is-ancestor", ancestor, commit)
    if status > 1:
        raise GitError("The history cannot be read", why=stderr.decode("utf-8", "replace").strip())
    return status == 0


def _tree(repository: Repository, commit: str) -> str:
    return run_git(repository.root, "rev-parse", f"{commit}^{{tree}}").strip()
