"""Commits of a branch that came to a target in another form: picked, rebased, or squashed into one.

Equal patches alone are no proof, since the same lines may have been added at another place of the file.
So a match counts only if picking the change onto the parent of its twin gives exactly the twin's tree.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from agent_farm.git.command import run_git
from agent_farm.git.divergence import merge_base
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.patches import Change, changed_paths, patch_ids
from agent_farm.git.repository import Repository

_MOST_TARGET_COMMITS = 5000
_MOST_PATHS = 500
_MOST_SPANS = 64
_MOST_BASES = 8
_MOST_TWINS = 4


@dataclass(frozen=True, slots=True)
class Candidates:
    """Commits that no target contains, newest first, with their parents."""

    parents: Mapping[str, Sequence[str]]

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

    def line(self, tip: str) -> list[str]:
        """`tip` and its first parents."""
        found = list[str]()
        ahead = [tip]
        while ahead and ahead[0] in self.parents and len(found) < _MOST_SPANS:
            found.append(ahead[0])
            ahead = list(self.parents[ahead[0]][:1])
        return found

    def forks(self) -> list[str]:
        """Where they left what the targets contain."""
        outer = {parent for parents in self.parents.values() for parent in parents}
        return sorted(outer - set(self.parents))


@dataclass(frozen=True, slots=True)
class _Span:
    """What happened between two commits, as one change; `covers` are the commits it stands for."""

    start: str
    end: str
    covers: frozenset[str]


def landed_in_another_form(
    repository: Repository,
    candidates: Candidates,
    tips: Sequence[str],
    targets: Sequence[str],
    timeout: float,
) -> set[str]:
    """Commits whose change, alone or summed up from where the branch left, is one commit on a target."""
    spans = _spans(repository, candidates, tips, targets)
    trees = commit_trees(repository, [commit for span in spans for commit in (span.start, span.end)])
    wanted = {span: (trees[span.start], trees[span.end]) for span in spans}
    paths = changed_paths(repository, wanted.values(), timeout=timeout)
    others = _target_changes(repository, candidates, targets, frozenset().union(*paths.values()), timeout)
    other_paths = changed_paths(repository, others.values(), timeout=timeout)

    shapes = set(paths.values()) & set(other_paths.values())  # a twin changes the same files
    likely = {commit: change for commit, change in others.items() if other_paths.get(change) in shapes}
    own = patch_ids(
        repository, [change for change in wanted.values() if paths.get(change) in shapes], timeout=timeout
    )
    theirs = patch_ids(repository, likely.values(), timeout=timeout)
    twins = _by_identity(likely, theirs)
    pairs = [(span, twin) for span, change in wanted.items() for twin in twins.get(own.get(change, ""), [])]
    proven = _proven(repository, pairs, trees, others, timeout)
    return {commit for span in proven for commit in span.covers}


def commit_trees(repository: Repository, commits: Sequence[str]) -> dict[str, str]:
    unique = list(dict.fromkeys(commits))
    question = "".join(f"{commit}^{{tree}}\n" for commit in unique).encode()
    output = run_git(repository.root, "cat-file", "--batch-check=%(objectname)", input=question)
    return dict(zip(unique, output.splitlines(), strict=True))


def _spans(
    repository: Repository, candidates: Candidates, tips: Sequence[str], targets: Sequence[str]
) -> list[_Span]:
    """Each commit by itself, and for each commit of a tip's first-parent line all since the branch left."""
    spans = {
        _Span(parents[0], commit, frozenset({commit})): None
        for commit, parents in candidates.parents.items()
        if len(parents) == 1
    }
    for tip in dict.fromkeys(tips):
        line = candidates.line(tip)
        bases = {merge_base(repository, target, tip) for target in targets} if line else set()
        for base in sorted(base for base in bases if base)[:_MOST_BASES]:
            spans |= {_Span(base, commit, frozenset(candidates.below(commit))): None for commit in line}
    return list(spans)


def _target_changes(
    repository: Repository,
    candidates: Candidates,
    targets: Sequence[str],
    paths: frozenset[str],
    timeout: float,
) -> dict[str, Change]:
    """The targets' commits since the candidates forked off that touch one of the same files."""
    if not paths:
        return {}
    limits = sorted(paths) if len(paths) <= _MOST_PATHS and not any("\n" in path for path in paths) else []
    since = _common(repository, candidates.forks())
    lines = [*targets, *(f"^{commit}" for commit in since), *(["--", *limits] if limits else [])]
    output = run_git(
        repository.root,
        "--literal-pathspecs",
        "rev-list",
        "--no-merges",
        "--full-history",
        f"--max-count={_MOST_TARGET_COMMITS}",
        "--stdin",
        input="".join(f"{line}\n" for line in lines).encode("utf-8", "surrogateescape"),
        timeout=timeout,
    )
    commits = output.split()
    question = "".join(f"{commit}^^{{tree}}\n{commit}^{{tree}}\n" for commit in commits).encode()
    trees = run_git(
        repository.root, "cat-file", "--batch-check=%(objectname)", input=question, timeout=timeout
    ).splitlines()
    changes = zip(trees[::2], trees[1::2], strict=True)
    # A first commit has no parent, and its answer is no hash.
    return {commit: change for commit, change in zip(commits, changes, strict=True) if " " not in change[0]}


def _by_identity(changes: Mapping[str, Change], identities: Mapping[Change, str]) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for commit, change in changes.items():
        if change in identities:
            found.setdefault(identities[change], []).append(commit)
    return {identity: commits[:_MOST_TWINS] for identity, commits in found.items()}


def _proven(
    repository: Repository,
    pairs: Sequence[tuple[_Span, str]],
    trees: Mapping[str, str],
    others: Mapping[str, Change],
    timeout: float,
) -> set[_Span]:
    """The spans that, picked onto the parent of their twin, give the twin."""
    merges = []
    for span, twin in pairs:
        # Two commits with the span's start as their parent: merging them is picking the span.
        here = _loose_commit(repository, others[twin][0], span.start)
        there = _loose_commit(repository, trees[span.end], span.start)
        merges.append((here, there))
    results = merged_trees(repository, merges, timeout=timeout)
    return {
        span
        for (span, twin), result in zip(pairs, results, strict=True)
        if not result.conflicts and result.tree == others[twin][1]
    }


def _loose_commit(repository: Repository, tree: str, parent: str) -> str:
    """A commit that no ref will name: git collects it in time."""
    nobody = {
        f"GIT_{role}_{fact}": value
        for role in ("AUTHOR", "COMMITTER")
        for fact, value in (("NAME", "agent-farm"), ("EMAIL", "agent-farm@localhost"), ("DATE", "@0 +0000"))
    }
    return run_git(repository.root, "commit-tree", tree, "-p", parent, input=b"compare\n", env=nobody).strip()


def _common(repository: Repository, commits: Sequence[str]) -> list[str]:
    if not commits:
        return []
    return run_git(repository.root, "merge-base", "--octopus", *commits, ok=(0, 1)).split()
