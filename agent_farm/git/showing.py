"""Shows what a builder changed, as a diff; and finds where its work starts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.git.checkout import NO_PROGRAMS, BuilderTree
from agent_farm.git.divergence import commit_graph, merge_base, parents_of, reachable, resolve_commits
from agent_farm.git.git_process import paths_of, run_git
from agent_farm.git.repository import Repository
from agent_farm.git.snapshots import copied_index

# The empty blob, which every git knows, by the length of a hash.
_EMPTY = {
    40: "e69de29bb2d1d6434b8b29ae775ad8c2e48c5391",
    64: "473a0f4c3be8a93681a267e3b1e9a7dcda1185436fe141f7749120a303721813",
}
_MOST_TEXT = "20m"  # a larger file is shown as binary, and not read into memory


def diff_worktree(tree: BuilderTree, start: str, *, stat: bool = False, color: bool = False) -> str:
    """Everything in the worktree that `start` lacks: commits, uncommitted changes and untracked files."""
    others = paths_of(tree.run("ls-files", "-z", "--others", "--exclude-standard"))
    if not others:
        return tree.run("-c", "diff.autoRefreshIndex=false", *_command(stat, color), start, "--")
    with copied_index(tree) as env:
        # Untracked files enter the index as empty, so that git diffs them. `add` would look into submodules,
        # obey a sparse checkout, and fail if the agent has just removed a file.
        empty = _EMPTY[len(tree.head().commit)]
        entries = "".join(f"100644 {empty} 0\t{path}\0" for path in others if path[-1] != "/")
        whole = ("-c", "core.splitIndex=false")  # otherwise git writes a part of it beside the real one
        tree.run(*whole, "update-index", "-z", "--index-info", input=entries, env=env)
        return tree.run(*_command(stat, color), start, "--", env=env)


def diff_commits(
    repository: Repository,
    start: str,
    tip: str,
    *,
    stat: bool = False,
    color: bool = False,
    whole: bool = False,
) -> str:
    """What the commits up to `tip` changed since `start`; `whole` includes what attributes hide."""
    options = (*NO_PROGRAMS, *(["--text"] if whole else []))
    return run_git(repository.root, *_command(stat, color), *options, start, tip, "--")


def start_of_work(repository: Repository, begun: str, tip: str, bases: Sequence[str]) -> str:
    """The commit after which everything up to `tip` is the builder's own.

    That is where it began or, if newer, the last commit of its `bases` that it merged. Once one of them
    contains `tip`, the commits can no longer be told apart: then it is where it began.
    """
    commit = repository.resolve_commit(begun)
    first = merge_base(repository, commit, tip) or commit  # without common history, all of it is shown
    if not bases:
        return first
    # given several, git treats them as if they had been merged
    newest = run_git(repository.root, "merge-base", tip, *bases, ok=(0, 1)).strip()
    if newest in ("", tip) or merge_base(repository, first, newest) != first:
        return first
    return newest


class WorkRange(Struct, frozen=True):
    """The commits where work began and where it is; `bases` are names, some of which may mean nothing."""

    begun: str
    tip: str
    bases: tuple[str, ...]


def starts_of_work(repository: Repository, asked: Sequence[WorkRange]) -> list[str]:
    """`start_of_work` for many: one process, and three more if one of them has merged a base since."""
    own = _own_commits(repository, [one for one in asked if one.begun != one.tip])
    left = [one for one in asked if one.begun != one.tip and not _grew_in_place(one, own)]
    known = _starts(repository, left) if left else {}
    return [known.get(one, one.begun) for one in asked]


def _own_commits(repository: Repository, asked: Sequence[WorkRange]) -> dict[str, list[str]]:
    """Commits that neither a base nor any commit where work began contains, with their parents."""
    tips = dict.fromkeys(one.tip for one in asked)
    outside = dict.fromkeys(name for one in asked for name in (one.begun, *one.bases))
    return parents_of(repository, tips, outside, "--ignore-missing") if tips else {}


def _grew_in_place(one: WorkRange, own: Mapping[str, Sequence[str]]) -> bool:
    """Whether all of its own commits build on where it began: then it has merged no newer base."""
    mine = reachable(one.tip, own)
    return {parent for commit in mine for parent in own[commit]} - mine == {one.begun}


def _starts(repository: Repository, asked: Sequence[WorkRange]) -> dict[WorkRange, str]:
    """The start of each, found in one reading of the graph."""
    names = resolve_commits(repository, {name for one in asked for name in one.bases})
    bases = {one: tuple(dict.fromkeys(filter(None, map(names.get, one.bases)))) for one in asked}
    commits = {commit for one in asked for commit in (one.begun, one.tip, *bases[one])}
    oldest, parents = commit_graph(repository, sorted(commits))
    above = {commit: reachable(commit, parents) for commit in commits}
    return {
        one: _start(replace(one, bases=bases[one]), above, parents, oldest)
        or start_of_work(repository, one.begun, one.tip, bases[one])
        for one in asked
    }


def _start(
    one: WorkRange, above: Mapping[str, set[str]], parents: Mapping[str, Sequence[str]], oldest: Sequence[str]
) -> str | None:
    """None if the graph allows more than one answer."""

    def newest(common: set[str]) -> str | None:
        heads = common - {parent for commit in common for parent in parents[commit]} or {*oldest}
        head = heads.pop() if len(heads) == 1 else None
        below = {parent for commit in reachable(head or "", parents) for parent in parents[commit]}
        return head if {*oldest} - {head} <= below else None

    first = newest(above[one.tip] & above[one.begun])
    if first is None or not one.bases:
        return first
    known = newest(above[one.tip] & set[str]().union(*(above[base] for base in one.bases)))
    if known is None or known == one.tip:
        return first if known else None
    return known if first in (*oldest, *above.get(known, reachable(known, parents))) else first


def _command(stat: bool, color: bool) -> tuple[str, ...]:
    """`git diff` with the same output whatever is configured: unquoted names, prefixes `a/` and `b/`."""
    shown = ("--stat=200",) if stat else ("--patch",)
    settings = ("-c", "core.quotePath=false", "-c", f"core.bigFileThreshold={_MOST_TEXT}")
    form = (f"--color={'always' if color else 'never'}", "--src-prefix=a/", "--dst-prefix=b/")
    return (*settings, "diff", *form, *shown)
