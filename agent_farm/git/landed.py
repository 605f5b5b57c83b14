"""Which commits exist nowhere but on a builder's branch.

A commit has landed when a target contains it, or has its change: picked or squashed into another commit, or
so that merging the branch would change nothing.
Each doubt (a conflict, a custom merge driver, a time limit) counts as not landed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from agent_farm.errors import TimedOut
from agent_farm.git.command import GitError, paths_of, run_git
from agent_farm.git.divergence import merge_base, resolve_commits
from agent_farm.git.equivalence import Candidates, commit_trees, landed_in_another_form
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.objects import open_repo
from agent_farm.git.patches import changed_paths
from agent_farm.git.remotes import find_base
from agent_farm.git.repository import Repository


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    subject: str


def landing_targets(repository: Repository, base: str | None) -> list[str]:
    """Where work counts as landed: the base, the main checkout's HEAD, every remote-tracking branch."""
    remote = repository.remote_branches()
    names = [base] if base else []
    if base and f"refs/remotes/{base}" in remote:  # landing on it is landing on the branch that follows it
        names += [f"refs/heads/{branch}" for branch in find_base(repository, base).branches]
    return [*names, "HEAD", *remote]


def unlanded_commits(
    repository: Repository, tips: Sequence[str], targets: Sequence[str], *, timeout: float = 20.0
) -> list[Commit]:
    """Commits of `tips` that are not on any of `targets`, newest first; targets that do not exist are none.

    No single question to git takes longer than `timeout` seconds; what could not be compared is reported.
    """
    resolved = resolve_commits(repository, [*targets, *tips])
    existing = sorted({commit for target in targets if (commit := resolved[target])})
    starts = [resolved[tip] or repository.resolve_commit(tip) for tip in tips]
    candidates = find_candidates(repository, starts, existing)
    remaining, _ = _compared(repository, candidates, starts, existing, timeout)
    return _described(repository, remaining)


def have_landed(
    repository: Repository, tips: Sequence[str], targets: Sequence[str], *, timeout: float
) -> bool | None:
    """Whether `unlanded_commits` would name none, asked of commits; None where there was no time to tell."""
    try:
        candidates = find_candidates(repository, tips, targets, timeout=timeout)
        remaining, told = _compared(repository, candidates, tips, targets, timeout)
    except (TimedOut, GitError):
        return None
    return not remaining if told or not remaining else None


def find_candidates(
    repository: Repository, tips: Sequence[str], targets: Sequence[str], *, timeout: float | None = None
) -> Candidates:
    """The commits that may not have landed: no target contains them."""
    question = "".join([*(f"{tip}\n" for tip in tips), *(f"^{target}\n" for target in targets)]).encode()
    order = ("rev-list", "--parents", "--topo-order", "--stdin")
    output = run_git(repository.root, *order, input=question, timeout=timeout)
    return Candidates({words[0]: words[1:] for words in map(str.split, output.splitlines())})


def _compared(
    repository: Repository,
    candidates: Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> tuple[list[str], bool]:
    """The candidates that have landed in no form, and whether every form could be compared."""
    remaining, told = list(candidates.parents), True
    for landed in (landed_in_another_form, _by_effect, _merges_without_content):
        if not remaining or not targets:
            break
        try:
            found = landed(repository, candidates, tips, targets, timeout)
        except (TimedOut, GitError):  # an unreadable object, too, proves nothing
            told = False
            continue
        remaining = [commit for commit in remaining if commit not in found]
    return remaining, told


def _by_effect(
    repository: Repository,
    candidates: Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Tips whose merge would change nothing on a target, although they do change something."""
    landed: set[str] = set()
    pairs = [(target, tip) for tip in tips if tip in candidates.parents for target in targets]
    trees = commit_trees(repository, [*tips, *targets])
    for (target, tip), result in zip(pairs, merged_trees(repository, pairs, timeout=timeout), strict=True):
        if result.conflicts or result.tree != trees[target]:
            continue
        base = merge_base(repository, target, tip)
        if base is None:
            continue
        change = (commit_trees(repository, [base])[base], trees[tip])
        changed = sorted(changed_paths(repository, [change], timeout=timeout).get(change, ()))
        if changed and not _merged_by_driver(repository, changed):
            landed |= candidates.below(tip)
    return landed


def _merges_without_content(
    repository: Repository,
    candidates: Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Merge commits that hold what git makes of their parents: they add nothing of their own."""
    merges = [commit for commit, parents in candidates.parents.items() if len(parents) == 2]
    pairs = [(candidates.parents[merge][0], candidates.parents[merge][1]) for merge in merges]
    trees = commit_trees(repository, merges)
    results = merged_trees(repository, pairs, timeout=timeout)
    return {
        merge
        for merge, result in zip(merges, results, strict=True)
        if not result.conflicts and result.tree == trees[merge]
    }


def _merged_by_driver(repository: Repository, paths: Sequence[str]) -> bool:
    """Whether the repository has a rule of its own for merging these files: it may drop a side silently."""
    if run_git(repository.root, "config", "merge.default", ok=(0, 1)).strip():
        return True
    question = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    output = run_git(repository.root, "check-attr", "-z", "--stdin", "merge", input=question)
    return any(value not in ("unspecified", "set", "unset") for value in paths_of(output)[2::3])


def _described(repository: Repository, commits: Sequence[str]) -> list[Commit]:
    if not commits:
        return []
    with open_repo(repository.root, repository.common_dir) as repo:
        return [Commit(sha, str(repo.commit(sha).summary)) for sha in commits]
