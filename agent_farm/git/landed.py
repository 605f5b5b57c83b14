"""Which commits exist nowhere but on a builder's branch. No other code decides this.

A commit has landed when a target contains it or its change: cherry-picked, squashed into another commit, or
such that merging the branch would change nothing. In doubt (a conflict, a custom merge driver, a time limit)
it counts as not landed.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from functools import partial

from msgspec import Struct

from agent_farm.errors import AgentFarmError, TimedOut
from agent_farm.git.asking import side_by_side
from agent_farm.git.divergence import commit_trees, merge_base, parents_of, reachable, resolve_commits
from agent_farm.git.git_process import GitError, git_deadline, paths_of, run_git
from agent_farm.git.merge_trees import loose_commit, merged_trees
from agent_farm.git.patches import Change, changed_paths, patch_ids
from agent_farm.git.repository import Repository

_SECONDS = 60.0
_MOST_COMMITS = 2000  # how many commits' files are asked for at once
_MOST_TARGET_COMMITS = 5000
_MOST_PATHS = 500
_MOST_SPANS = 64
_MOST_BASES = 8
_MOST_TWINS = 4


class Commit(Struct, frozen=True):
    sha: str
    subject: str


def unlanded_commits(repository: Repository, tips: Sequence[str], targets: Sequence[str]) -> list[Commit]:
    """Commits of `tips` that are on none of `targets`, newest first; targets that do not exist are skipped.

    The time is limited; commits that could not be compared in time are reported as not landed.
    """
    resolved = resolve_commits(repository, [*targets, *tips])
    existing = sorted({commit for target in targets if (commit := resolved[target])})
    starts = [resolved[tip] or repository.resolve_commit(tip) for tip in tips]
    with git_deadline(_SECONDS):
        remaining, _ = _Comparison.of(repository, starts, existing).remaining()
    if not remaining:
        return []
    asked = "".join(f"{sha}\n" for sha in remaining)
    rows = run_git(repository.root, "log", "--no-walk=unsorted", "--format=%H %s", "--stdin", input=asked)
    return [Commit(sha, subject) for sha, _, subject in (row.partition(" ") for row in rows.splitlines())]


def unlanded_of_each(
    repository: Repository, branches: Mapping[str, Sequence[str]], targets: Sequence[str]
) -> dict[str, list[Commit] | AgentFarmError]:
    """`unlanded_commits` for many branches, each given by its tips.

    One question finds the branches that the targets contain; only the others are compared one by one.
    """
    resolved = resolve_commits(repository, {*targets, *(tip for tips in branches.values() for tip in tips)})
    existing = sorted({commit for target in targets if (commit := resolved[target])})
    known = sorted({commit for tips in branches.values() for tip in tips if (commit := resolved[tip])})
    with git_deadline(_SECONDS):
        whole = _Comparison.of(repository, known, existing)
    left = {
        name: tips
        for name, tips in branches.items()
        if any(resolved[tip] is None or whole.below(str(resolved[tip])) for tip in tips)
    }
    compared = side_by_side(
        {name: partial(unlanded_commits, repository, tips, targets) for name, tips in left.items()}
    )
    return {name: compared.get(name, []) for name in branches}


def have_landed(
    repository: Repository, tips: Sequence[str], targets: Sequence[str], *, timeout: float
) -> bool | None:
    """Whether `unlanded_commits` would be empty for these commits; None if the time was too short to tell."""
    try:
        with git_deadline(timeout):
            remaining, all_compared = _Comparison.of(repository, tips, targets).remaining()
    except (TimedOut, GitError):
        return None
    return not remaining if all_compared or not remaining else None


def landed_plainly(
    repository: Repository,
    branches: Mapping[str, Sequence[str]],
    targets: Sequence[str],
    *,
    timeout: float,
) -> dict[str, bool]:
    """`have_landed` for many branches at once; those that need a comparison of content are left out.

    A branch has landed if the targets contain it. It has not landed if no commit on a target since the fork
    touches a file that the branch touches: its change cannot be there in another form.
    """
    with git_deadline(timeout):
        return _plainly(repository, branches, targets)


def _plainly(
    repository: Repository, branches: Mapping[str, Sequence[str]], targets: Sequence[str]
) -> dict[str, bool]:
    ask = _Comparison.of
    own = ask(repository, sorted({tip for tips in branches.values() for tip in tips}), targets)
    commits = {name: set[str]().union(*map(own.below, tips)) for name, tips in branches.items()}
    answers = {name: True for name, some in commits.items() if not some}
    # a branch that a target was merged into has several forks: that needs a comparison
    forks = {
        name: outer[0]
        for name, some in commits.items()
        if some and len(outer := sorted({one for commit in some for one in own.parents[commit]} - some)) == 1
    }
    since = {
        fork: ask(repository, targets, [fork]).parents if {*targets} != {fork} else {}
        for fork in set(forks.values())
    }
    parents = {commit: few for some in (own.parents, *since.values()) for commit, few in some.items()}
    if len(parents) > _MOST_COMMITS:
        return answers
    touched = _files_touched(repository, parents) if any(since.values()) else {}

    def files(some: Iterable[str]) -> frozenset[str]:
        return frozenset[str]().union(*(touched.get(commit, frozenset()) for commit in some))

    there = {fork: files(some) for fork, some in since.items()}
    return answers | {name: False for name, fork in forks.items() if not files(commits[name]) & there[fork]}


def _files_touched(repository: Repository, parents: Mapping[str, Sequence[str]]) -> dict[str, frozenset[str]]:
    """The files that each commit changes against its first parent; for a merge, everything it brought."""
    pairs = {commit: few[0] for commit, few in parents.items() if few}
    trees = commit_trees(repository, [*pairs, *pairs.values()])
    changes = {commit: (trees[parent], trees[commit]) for commit, parent in pairs.items()}
    paths = changed_paths(repository, set(changes.values()))
    return {commit: paths.get(change, frozenset()) for commit, change in changes.items()}


class _Span(Struct, frozen=True):
    """Everything between two commits as one change; `covers` are the commits that it stands for."""

    start: str
    end: str
    covers: frozenset[str]


class _Comparison(Struct, frozen=True):
    """`parents` maps each commit that no target contains, newest first, to its parents."""

    repository: Repository
    tips: Sequence[str]
    targets: Sequence[str]
    parents: Mapping[str, Sequence[str]]

    @classmethod
    def of(cls, repository: Repository, tips: Sequence[str], targets: Sequence[str]) -> _Comparison:
        return cls(repository, tips, targets, parents_of(repository, tips, targets, "--topo-order"))

    def remaining(self) -> tuple[list[str], bool]:
        """The commits that have not landed in any form, and whether every form could be compared."""
        left, all_compared = list(self.parents), True
        for landed in (self._in_another_form, self._by_effect, self._merges_without_content):
            if not left or not self.targets:
                break
            try:
                found = landed()
            except (TimedOut, GitError):  # nor does an unreadable object prove anything
                all_compared = False
                continue
            left = [commit for commit in left if commit not in found]
        return left, all_compared

    def below(self, tip: str) -> set[str]:
        """`tip` and those of its ancestors that no target contains."""
        return reachable(tip, self.parents)

    def _in_another_form(self) -> set[str]:
        """Commits whose change, alone or squashed with all since the fork, equals one commit on a target.

        Equal patches alone are no proof: the same lines may have been added elsewhere in the file. So a match
        only counts if cherry-picking the change onto the parent of its match gives the tree of the match.
        """
        spans = self._spans()
        trees = commit_trees(self.repository, [commit for span in spans for commit in (span.start, span.end)])
        wanted = {span: (trees[span.start], trees[span.end]) for span in spans}
        paths = changed_paths(self.repository, wanted.values())
        others = self._changes_on_targets(frozenset().union(*paths.values()))
        ids = patch_ids(self.repository, {*wanted.values(), *others.values()})
        twins: dict[str, list[Change]] = {}
        for change in others.values():
            twins.setdefault(ids.get(change, ""), []).append(change)
        pairs = [
            (span, twin)
            for span, change in wanted.items()
            if change in ids
            for twin in twins.get(ids[change], [])[:_MOST_TWINS]
        ]
        ours = [loose_commit(self.repository, twin[0], span.start) for span, twin in pairs]
        theirs = [loose_commit(self.repository, wanted[span][1], span.start) for span, _ in pairs]
        both = list(zip(ours, theirs, strict=True))
        results = merged_trees(self.repository, both)
        return {
            commit
            for (span, twin), result in zip(pairs, results, strict=True)
            if not result.conflicts and result.tree == twin[1]
            for commit in span.covers
        }

    def _spans(self) -> list[_Span]:
        """Each commit by itself; and for each on a tip's first-parent line, everything since the fork."""
        spans = {
            _Span(parents[0], commit, frozenset({commit})): None
            for commit, parents in self.parents.items()
            if len(parents) == 1
        }
        for tip in dict.fromkeys(self.tips):
            line = self._line(tip)
            bases = {merge_base(self.repository, target, tip) for target in self.targets} if line else set()
            for base in sorted(base for base in bases if base)[:_MOST_BASES]:
                spans |= {_Span(base, commit, frozenset(self.below(commit))): None for commit in line}
        return list(spans)

    def _line(self, tip: str) -> list[str]:
        """`tip` and its first parents."""
        found = list[str]()
        ahead = [tip]
        while ahead and ahead[0] in self.parents and len(found) < _MOST_SPANS:
            found.append(ahead[0])
            ahead = list(self.parents[ahead[0]][:1])
        return found

    def _changes_on_targets(self, paths: Collection[str]) -> dict[str, Change]:
        """Commits on the targets since the fork that touch one of `paths`."""
        if not paths:
            return {}
        limits = sorted(paths) if len(paths) <= _MOST_PATHS and not any("\n" in one for one in paths) else []
        outer = {parent for few in self.parents.values() for parent in few} - self.parents.keys()
        common = ("merge-base", "--octopus", *sorted(outer))
        since = run_git(self.repository.root, *common, ok=(0, 1)).split() if outer else []
        lines = [*self.targets, *(f"^{commit}" for commit in since), *(["--", *limits] if limits else [])]
        plain = ("--literal-pathspecs", "rev-list", "--no-merges", "--full-history")
        given = "".join(f"{line}\n" for line in lines)
        most = f"--max-count={_MOST_TARGET_COMMITS}"
        output = run_git(self.repository.root, *plain, most, "--stdin", input=given)
        commits = output.split()  # when paths are given, git simplifies history and reports other parents
        trees = commit_trees(self.repository, [name for one in commits for name in (f"{one}^", one)])
        changes = {commit: (trees[f"{commit}^"], trees[commit]) for commit in commits}
        # a root commit has no parent, so the answer for it is not a hash
        return {commit: change for commit, change in changes.items() if " " not in change[0]}

    def _by_effect(self) -> set[str]:
        """Tips that change something, but whose merge into a target would change nothing."""
        landed: set[str] = set()
        pairs = [(target, tip) for tip in self.tips if tip in self.parents for target in self.targets]
        trees = commit_trees(self.repository, [*self.tips, *self.targets])
        results = merged_trees(self.repository, pairs)
        for (target, tip), result in zip(pairs, results, strict=True):
            if result.conflicts or result.tree != trees[target]:
                continue
            base = merge_base(self.repository, target, tip)
            if base is None:
                continue
            change = (commit_trees(self.repository, [base])[base], trees[tip])
            changed = sorted(changed_paths(self.repository, [change]).get(change, ()))
            if changed and not _merged_by_driver(self.repository, changed):
                landed |= self.below(tip)
        return landed

    def _merges_without_content(self) -> set[str]:
        """Merge commits that are exactly what git makes of their parents: they add nothing of their own."""
        merges = [commit for commit, parents in self.parents.items() if len(parents) == 2]
        pairs = [(self.parents[merge][0], self.parents[merge][1]) for merge in merges]
        trees = commit_trees(self.repository, merges)
        results = zip(merges, merged_trees(self.repository, pairs), strict=True)
        return {merge for merge, one in results if not one.conflicts and one.tree == trees[merge]}


def _merged_by_driver(repository: Repository, paths: Sequence[str]) -> bool:
    """Whether a custom merge driver handles these files: it may drop one side silently."""
    if run_git(repository.root, "config", "merge.default", ok=(0, 1)).strip():
        return True
    question = "".join(f"{path}\0" for path in paths)
    output = run_git(repository.root, "check-attr", "-z", "--stdin", "merge", input=question)
    return any(value not in ("unspecified", "set", "unset") for value in paths_of(output)[2::3])
