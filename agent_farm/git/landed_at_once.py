"""Which of many branches have landed, as far as graph and file names tell, in a few processes for all."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence

from agent_farm.git.equivalence import Candidates, commit_trees
from agent_farm.git.landed import find_candidates
from agent_farm.git.patches import changed_paths
from agent_farm.git.repository import Repository

_MOST_COMMITS = 2000


def landed_plainly(
    repository: Repository,
    branches: Mapping[str, Sequence[str]],
    targets: Sequence[str],
    *,
    timeout: float,
) -> dict[str, bool]:
    """For each of `branches`, given as tips; what only a comparison of content can tell is left out.

    A branch has landed when the targets contain it. It has not when no commit on a target since it left
    touches a file that it touches: then nothing can have come there in another form.
    """
    tips = sorted({tip for some in branches.values() for tip in some})
    candidates = find_candidates(repository, tips, targets, timeout=timeout)
    own = {name: set[str]().union(*map(candidates.below, some)) for name, some in branches.items()}
    answers = {name: True for name, commits in own.items() if not commits}
    forks = {name: fork for name, commits in own.items() if (fork := _only_fork(candidates, commits))}
    others = {
        fork: find_candidates(repository, targets, [fork], timeout=timeout) for fork in set(forks.values())
    }
    commits = {commit for name in forks for commit in own[name]}
    known = [candidates, *others.values()]
    for fork in others:
        commits |= others[fork].parents.keys()
    if len(commits) > _MOST_COMMITS:
        return answers
    touched = _touched(repository, commits, known, timeout)
    there = {fork: _union(touched, found.parents) for fork, found in others.items()}
    apart = {name for name, fork in forks.items() if not _union(touched, own[name]) & there[fork]}
    return answers | dict.fromkeys(apart, False)


def _only_fork(candidates: Candidates, commits: Collection[str]) -> str | None:
    """Where the commits left the targets; None where that are several places, as after taking a target in."""
    outer = {parent for commit in commits for parent in candidates.parents[commit]} - set(commits)
    return next(iter(outer)) if len(outer) == 1 else None


def _touched(
    repository: Repository, commits: Iterable[str], known: Iterable[Candidates], timeout: float
) -> dict[str, frozenset[str]]:
    """The files each commit changes against its first parent; for a merge, all that it brought."""
    parents = {commit: few for candidates in known for commit, few in candidates.parents.items()}
    pairs = {commit: parents[commit][0] for commit in commits if parents[commit]}
    trees = commit_trees(repository, [*pairs, *pairs.values()])
    changes = {commit: (trees[parent], trees[commit]) for commit, parent in pairs.items()}
    paths = changed_paths(repository, set(changes.values()), timeout=timeout)
    return {commit: paths.get(change, frozenset()) for commit, change in changes.items()}


def _union(touched: Mapping[str, frozenset[str]], commits: Iterable[str]) -> frozenset[str]:
    return frozenset[str]().union(*(touched.get(commit, frozenset()) for commit in commits))
