"""Which commits exist nowhere but on a builder's branch.

A commit has landed when a target contains it, or contains its change: as a commit with the same patch, or as
one commit with the patch of the whole branch (a squash merge), or when merging the branch changes nothing.
Each doubt (a conflict, a custom merge driver, a time limit) counts as not landed.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_farm.errors import TimedOut
from agent_farm.git.command import GitError, paths_of, run_git
from agent_farm.git.divergence import merge_base, resolve_commits
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.objects import open_repo
from agent_farm.git.patches import patch_ids, span_patch_ids
from agent_farm.git.repository import Repository

_MOST_TARGET_COMMITS = 5000
_MOST_PATHS = 500
_MOST_SPANS = 64
_MOST_BASES = 8


@dataclass(frozen=True, slots=True)
class Commit:
    sha: str
    subject: str


@dataclass(frozen=True, slots=True)
class _Candidates:
    """Commits that no target contains, newest first, with their parents."""

    parents: Mapping[str, Sequence[str]]

    def single(self) -> list[str]:
        return [commit for commit, parents in self.parents.items() if len(parents) < 2]

    def merges(self) -> list[str]:
        return [commit for commit, parents in self.parents.items() if len(parents) == 2]

    def below(self, tip: str) -> set[str]:
        """`tip` and its ancestors, as far as they are candidates."""
        reached: set[str] = set()
        waiting = [tip]
        while waiting:
            commit = waiting.pop()
            if commit in self.parents and commit not in reached:
                reached.add(commit)
                waiting.extend(self.parents[commit])
        return reached


def landing_targets(repository: Repository, base: str | None) -> list[str]:
    """Where work counts as landed: the base, the main checkout's HEAD, every remote-tracking branch."""
    return [name for name in (base, "HEAD") if name] + repository.remote_branches()


def unlanded_commits(
    repository: Repository, tips: Sequence[str], targets: Sequence[str], *, timeout: float = 20.0
) -> list[Commit]:
    """Commits of `tips` that are not on any of `targets`, newest first; targets that do not exist are none.

    No single question to git takes longer than `timeout` seconds; what could not be compared is reported.
    """
    resolved = resolve_commits(repository, targets)
    existing = sorted({commit for commit in resolved.values() if commit})
    starts = [repository.resolve_commit(tip) for tip in tips]
    candidates = _candidates(repository, starts, existing)
    remaining = dict(candidates.parents)
    for landed in (_by_patch, _by_effect, _merges_without_content):
        if not remaining or not existing:
            break
        try:
            found = landed(repository, candidates, starts, existing, timeout)
        except (TimedOut, GitError):  # an unreadable object, too, proves nothing
            continue
        remaining = {commit: parents for commit, parents in remaining.items() if commit not in found}
    return _described(repository, list(remaining))


def _candidates(repository: Repository, tips: Sequence[str], targets: Sequence[str]) -> _Candidates:
    question = "".join([*(f"{tip}\n" for tip in tips), *(f"^{target}\n" for target in targets)])
    output = run_git(
        repository.root, "rev-list", "--parents", "--topo-order", "--stdin", input=question.encode()
    )
    return _Candidates({words[0]: words[1:] for words in map(str.split, output.splitlines())})


def _by_patch(
    repository: Repository,
    candidates: _Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Commits picked or rebased one by one, and those whose sum up to some point was squashed into one."""
    there = set(
        patch_ids(
            repository, _target_commits(repository, candidates, targets, timeout), timeout=timeout
        ).values()
    )
    if not there:
        return set()
    own = patch_ids(repository, candidates.single(), timeout=timeout)
    landed = {commit for commit, identity in own.items() if identity in there}
    for base, chain in _chains(repository, candidates, tips, targets):
        trees = _trees(repository, [base, *chain])
        spans = {commit: (trees[base], trees[commit]) for commit in chain}
        for commit, identity in span_patch_ids(repository, spans, timeout=timeout).items():
            if identity in there:
                landed |= candidates.below(commit)
    return landed


def _by_effect(
    repository: Repository,
    candidates: _Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Tips whose merge would change nothing on a target, although they do change something."""
    landed: set[str] = set()
    pairs = [(target, tip) for tip in tips if tip in candidates.parents for target in targets]
    trees = _trees(repository, [*tips, *targets])
    for (target, tip), result in zip(pairs, merged_trees(repository, pairs, timeout=timeout), strict=True):
        if result.conflicts or result.tree != trees[target]:
            continue
        base = merge_base(repository, target, tip)
        changed = _changed_paths(repository, base, tip, timeout) if base else []
        if changed and not _merged_by_driver(repository, changed):
            landed |= candidates.below(tip)
    return landed


def _merges_without_content(
    repository: Repository,
    candidates: _Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Merge commits that hold what git makes of their parents: they add nothing of their own."""
    merges = candidates.merges()
    pairs = [(candidates.parents[merge][0], candidates.parents[merge][1]) for merge in merges]
    trees = _trees(repository, merges)
    results = merged_trees(repository, pairs, timeout=timeout)
    return {
        merge
        for merge, result in zip(merges, results, strict=True)
        if not result.conflicts and result.tree == trees[merge]
    }


def _target_commits(
    repository: Repository, candidates: _Candidates, targets: Sequence[str], timeout: float
) -> list[str]:
    """The targets' commits since the candidates forked off that touch one of the same files."""
    forks = {parent for parents in candidates.parents.values() for parent in parents}
    forks -= set(candidates.parents)
    since = _common(repository, sorted(forks))
    paths = _touched_paths(repository, candidates.single(), timeout)
    limits = paths if len(paths) <= _MOST_PATHS and not any("\n" in path for path in paths) else []
    lines = [*targets, *(f"^{commit}" for commit in since), *(["--", *limits] if limits else [])]
    question = "".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape")
    output = run_git(
        repository.root,
        "--literal-pathspecs",
        "rev-list",
        "--no-merges",
        "--full-history",
        f"--max-count={_MOST_TARGET_COMMITS}",
        "--stdin",
        input=question,
        timeout=timeout,
    )
    return output.split()


def _chains(
    repository: Repository, candidates: _Candidates, tips: Sequence[str], targets: Sequence[str]
) -> list[tuple[str, list[str]]]:
    """For each tip and target, where they part and the first-parent line from there to the tip."""
    chains = []
    for tip in dict.fromkeys(tips):
        line = list[str]()
        ahead = [tip]
        while ahead and ahead[0] in candidates.parents and len(line) < _MOST_SPANS:
            line.append(ahead[0])
            ahead = list(candidates.parents[ahead[0]][:1])
        bases = dict.fromkeys(merge_base(repository, target, tip) for target in targets) if line else {}
        chains += [(base, line) for base in bases if base][:_MOST_BASES]
    return chains


def _touched_paths(repository: Repository, commits: Sequence[str], timeout: float) -> list[str]:
    question = "".join(f"{commit}\n" for commit in commits).encode()
    output = run_git(
        repository.root,
        "diff-tree",
        "--stdin",
        "--no-commit-id",
        "--root",
        "-r",
        "-z",
        "--name-only",
        "--no-renames",
        input=question,
        timeout=timeout,
    )
    return list(dict.fromkeys(paths_of(output)))


def _changed_paths(repository: Repository, old: str, new: str, timeout: float) -> list[str]:
    return paths_of(
        run_git(
            repository.root, "diff-tree", "-r", "-z", "--name-only", "--no-renames", old, new, timeout=timeout
        )
    )


def _merged_by_driver(repository: Repository, paths: Sequence[str]) -> bool:
    """Whether the repository has a rule of its own for merging these files: it may drop a side silently."""
    if run_git(repository.root, "config", "merge.default", ok=(0, 1)).strip():
        return True
    question = "".join(f"{path}\0" for path in paths).encode("utf-8", "surrogateescape")
    output = run_git(repository.root, "check-attr", "-z", "--stdin", "merge", input=question)
    return any(value not in ("unspecified", "set", "unset") for value in paths_of(output)[2::3])


def _common(repository: Repository, commits: Sequence[str]) -> list[str]:
    if not commits:
        return []
    return run_git(repository.root, "merge-base", "--octopus", *commits, ok=(0, 1)).split()


def _trees(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    unique = list(dict.fromkeys(commits))
    question = "".join(f"{commit}^{{tree}}\n" for commit in unique).encode()
    output = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", input=question)
    return dict(zip(unique, output.splitlines(), strict=True))


def _described(repository: Repository, commits: Sequence[str]) -> list[Commit]:
    if not commits:
        return []
    with open_repo(repository.root, repository.common_dir) as repo:
        return [Commit(sha, str(repo.commit(sha).summary)) for sha in commits]
