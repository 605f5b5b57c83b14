"""How far branches are from their bases, for all builders at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from agent_farm.git.git_process import run_git
from agent_farm.git.repository import Repository


class Divergence(Struct, frozen=True):
    """How many commits a branch has that its base lacks (`ahead`), and the other way round (`behind`)."""

    ahead: int
    behind: int


def ahead_behind(
    repository: Repository, pairs: Sequence[tuple[str | None, str | None]]
) -> list[Divergence | None]:
    """For each (commit, commit of its base), how far apart they are; None if one of them does not exist.

    Two processes for any number of pairs: one finds the common ancestor of all, one reads the graph above
    it; the counting is done here.
    """
    apart = {commit for pair in pairs if None not in pair and pair[0] != pair[1] for commit in pair if commit}
    parents = commit_graph(repository, sorted(apart))[1] if apart else {}
    reached = {commit: reachable(commit, parents) for commit in apart}
    return [_divergence(*pair, reached) for pair in pairs]


def resolve_commits(repository: Repository, names: Iterable[str]) -> dict[str, str | None]:
    """The commit each name stands for, None if there is none; one process for all."""
    names = list(names)
    found = _resolved(repository, names, ("commit",))
    return {name: found[name][0] if name in found else None for name in names}


def commit_at(repository: Repository, name: str) -> str | None:
    return resolve_commits(repository, [name])[name]


def resolve_trees(repository: Repository, names: Iterable[str]) -> dict[str, tuple[str, str]]:
    """Commit and tree of each name that stands for a commit; one process for all."""
    return {
        name: (commit, tree)
        for name, (commit, tree) in _resolved(repository, names, ("commit", "tree")).items()
    }


def _resolved(repository: Repository, names: Iterable[str], kinds: Sequence[str]) -> dict[str, list[str]]:
    """For each name, one object of each of `kinds`; names that lack one are left out."""
    asked = [name for name in dict.fromkeys(names) if name and "\n" not in name]
    question = "".join(f"{name}^{{{kind}}}\n" for name in asked for kind in kinds)
    check = "--batch-check=%(objecttype) %(objectname)"
    output = run_git(repository.root, "cat-file", check, input=question)
    rows = [row.partition(" ") for row in output.splitlines()]
    of_each = dict(zip(asked, zip(*[iter(rows)] * len(kinds), strict=True), strict=True))
    return {
        name: [object for _, _, object in some]
        for name, some in of_each.items()
        if all(found == kind for (found, _, _), kind in zip(some, kinds, strict=True))
    }


def commit_trees(repository: Repository, commits: Iterable[str]) -> dict[str, str]:
    unique = list(dict.fromkeys(commits))
    question = "".join(f"{commit}^{{tree}}\n" for commit in unique)
    output = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", input=question)
    return dict(zip(unique, output.splitlines(), strict=True))


def merge_base(repository: Repository, one: str, other: str) -> str | None:
    """The newest commit that both contain; None if they have no common history."""
    return run_git(repository.root, "merge-base", one, other, ok=(0, 1)).strip() or None


def _divergence(one: str | None, other: str | None, reached: Mapping[str, set[str]]) -> Divergence | None:
    if one is None or other is None:
        return None
    if one == other:
        return Divergence(0, 0)
    return Divergence(len(reached[one] - reached[other]), len(reached[other] - reached[one]))


def commit_graph(repository: Repository, commits: Sequence[str]) -> tuple[list[str], dict[str, list[str]]]:
    """The newest commits contained in all of `commits`, and the parents of every commit above those."""
    common = run_git(repository.root, "merge-base", "--octopus", *commits, ok=(0, 1)).split()
    return common, parents_of(repository, commits, common)


def parents_of(
    repository: Repository, tips: Iterable[str], without: Iterable[str], *options: str
) -> dict[str, list[str]]:
    """The parents of each commit that is in `tips` but not in `without`, in the order of `git rev-list`."""
    question = "".join([*(f"{name}\n" for name in tips), *(f"^{name}\n" for name in without)])
    rows = run_git(repository.root, "rev-list", "--parents", *options, "--stdin", input=question).splitlines()
    return {row[0]: row[1:] for row in map(str.split, rows)}


def reachable(commit: str, parents: Mapping[str, Sequence[str]]) -> set[str]:
    """`commit` and its ancestors, as far as `parents` knows them."""
    reached: set[str] = set()
    waiting = [commit]
    while waiting:
        current = waiting.pop()
        if current in parents and current not in reached:
            reached.add(current)
            waiting.extend(parents[current])
    return reached
