"""The results of merges, without a checkout: one git process for any number of pairs."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from msgspec import Struct

from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import ask_git, paths_of, run_git
from agent_farm.git.repository import Repository

_MOST_MARKED = 2_000_000  # of a file that is searched for conflict markers
_NOBODY = {
    f"GIT_{role}_{fact}": value
    for role in ("AUTHOR", "COMMITTER")
    for fact, value in (("NAME", "agent-farm"), ("EMAIL", "agent-farm@localhost"), ("DATE", "@0 +0000"))
}


class MergeResult(Struct, frozen=True):
    """The tree that a merge gives; the files in `conflicts` have conflict markers in it."""

    tree: str
    conflicts: tuple[str, ...]


def merged_trees(repository: Repository, pairs: Sequence[tuple[str, str]]) -> list[MergeResult]:
    """The result for each pair of commits. No ref or file changes, and no common history is needed."""
    if not pairs:
        return []
    output = run_git(
        repository.root,
        "-c",
        "merge.renormalize=false",
        "merge-tree",
        "--write-tree",
        "--stdin",
        "-z",
        "--name-only",
        "--no-messages",
        "--allow-unrelated-histories",
        input="".join(f"{one} {other}\n" for one, other in pairs),
    )
    return list(_parsed(paths_of(output)))


def _parsed(items: Sequence[str]) -> Iterator[MergeResult]:
    """Each result is a digit, a tree, the names of conflicting files and an empty item."""
    rest = iter(items)
    for digit in rest:
        if not digit:
            continue
        tree = next(rest)
        conflicts = tuple(iter(lambda: next(rest, ""), ""))
        yield MergeResult(tree, conflicts)


def loose_commit(repository: Repository, tree: str, *parents: str, message: str = "compare\n") -> str:
    """A commit that git collects in time, unless a ref is made for it.

    Merging two commits with the same parent is cherry-picking one onto the other.
    """
    whole = ("commit-tree", tree, *(word for parent in parents for word in ("-p", parent)))
    return run_git(repository.root, *whole, input=message, env=_NOBODY).strip()


def merge_results(repository: Repository, pairs: Sequence[tuple[str, str]]) -> list[MergeResult | None]:
    """For each pair of branches or commits, what merging them gives; None if one does not exist."""
    commits = resolve_commits(repository, {name for pair in pairs for name in pair})
    known = list(dict.fromkeys((commits[one], commits[other]) for one, other in pairs))
    asked = [(one, other) for one, other in known if one and other]
    results = dict(zip(asked, merged_trees(repository, asked), strict=True))
    return [results.get((commits[one] or "", commits[other] or "")) for one, other in pairs]


class Hunk(Struct, frozen=True):
    """Lines that git could not merge, with its markers; `line` is where they begin in the file it wrote."""

    file: str
    line: int
    text: str


def conflict_hunks(repository: Repository, result: MergeResult) -> Iterator[Hunk]:
    """The hunks of files with markers; a file that one side deleted, or a binary one, has none."""
    for file in result.conflicts:
        status, output, _ = ask_git(repository.root, "cat-file", "blob", f"{result.tree}:{file}")
        if status == 0 and len(output) <= _MOST_MARKED:
            yield from _marked(file, output.decode("utf-8", "replace").split("\n"))


def _marked(file: str, lines: Sequence[str]) -> Iterator[Hunk]:
    begun = None
    for number, line in enumerate(lines):
        if line.startswith("<<<<<<< ") and begun is None:
            begun = number
        elif line.startswith(">>>>>>> ") and begun is not None:
            yield Hunk(file, begun + 1, "\n".join(lines[begun : number + 1]))
            begun = None
