"""How far branches are from their bases, for all builders at once."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from msgspec import Struct

from agent_farm.git.git_process import run_git
from agent_farm.git.repository import Repository


class Divergence(Struct, frozen=True):
    """Commits of a branch that its base lacks, and of the base that the branch lacks."""

    ahead: int
    behind: int


def ahead_behind(
    repository: Repository, pairs: Sequence[tuple[str | None, str | None]]
) -> list[Divergence | None]:
    """For each (commit, base's commit): how far they are apart; None where one of them does not exist.

    Two processes for any number of pairs: one finds what all have in common, one reads the graph above that;
    the counting is done here.
    """
    apart = {commit for pair in pairs if None not in pair and pair[0] != pair[1] for commit in pair if commit}
    parents = commit_graph(repository, sorted(apart))[1] if apart else {}
    reached = {commit: reachable(commit, parents) for commit in apart}
    return [_divergence(*pair, reached) for pair in pairs]


def resolve_commits(repository: Repository, names: Iterable[str]) -> dict[str, str | None]:
    """Each name's commit, asked in one process; None where there is none."""
    asked = [name for name in dict.fromkeys(names) if name and "\n" not in name]
    question = "".join(f"{name}^{{commit}}\n" for name in asked).encode("utf-8", "surrogateescape")
    check = "--batch-check=%(objecttype) %(objectname)"
    lines = run_git(repository.root, "cat-file", check, input=question).splitlines()
    answers = dict(zip(asked, lines, strict=True))
    found = {
        name: line.removeprefix("commit ") for name, line in answers.items() if line.startswith("commit ")
    }
    return {name: found.get(name) for name in names}


def commit_trees(repository: Repository, commits: Iterable[str]) -> dict[str, str]:
    unique = list(dict.fromkeys(commits))
    question = "".join(f"{commit}^{{tree}}\n" for commit in unique).encode()
    output = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", input=question)
    return dict(zip(unique, output.splitlines(), strict=True))


def merge_base(repository: Repository, one: str, other: str) -> str | None:
    """The newest commit both contain; None when they have no history in common."""
    return run_git(repository.root, "merge-base", one, other, ok=(0, 1)).strip() or None


def _divergence(one: str | None, other: str | None, reached: Mapping[str, set[str]]) -> Divergence | None:
    if one is None or other is None:
        return None
    if one == other:
        return Divergence(0, 0)
    return Divergence(len(reached[one] - reached[other]), len(reached[other] - reached[one]))


def commit_graph(repository: Repository, commits: Sequence[str]) -> tuple[str | None, dict[str, list[str]]]:
    """The newest commit that all of `commits` contain, if it is one; and the parents of each above it."""
    common = run_git(repository.root, "merge-base", "--octopus", *commits, ok=(0, 1)).split()
    question = "".join([*(f"{commit}\n" for commit in commits), *(f"^{commit}\n" for commit in common)])
    output = run_git(repository.root, "rev-list", "--parents", "--stdin", input=question.encode())
    above = {line[0]: line[1:] for line in map(str.split, output.splitlines())}
    return common[0] if len(common) == 1 else None, above


def reachable(commit: str, parents: Mapping[str, Sequence[str]]) -> set[str]:
    """`commit` and its ancestors, as far as they are known."""
    reached: set[str] = set()
    waiting = [commit]
    while waiting:
        current = waiting.pop()
        if current in parents and current not in reached:
            reached.add(current)
            waiting.extend(parents[current])
    return reached
