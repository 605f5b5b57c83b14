"""What changes, of many changes in one process: the files, and an identity apart from where and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from agent_farm.git.git_process import paths_of, run_git, run_git_bytes
from agent_farm.git.repository import Repository

# An old tree and a new one.
Change = tuple[str, str]

_AT_ONCE = 100
# Lines of content begin with a sign or a blank, so bare hashes can only be the header of a change.
_HEADER = re.compile(rb"^([0-9a-f]{40}) ([0-9a-f]{40})$", re.MULTILINE)


def changed_paths(
    repository: Repository, changes: Iterable[Change], *, timeout: float | None = None
) -> dict[Change, frozenset[str]]:
    """The files that differ."""
    output = _diff(repository, list(changes), ("--raw", "-z"), timeout).decode("utf-8", "surrogateescape")
    found: dict[Change, set[str]] = {}
    files = set[str]()
    items = iter(paths_of(output))
    for item in items:
        # What happened to a file, after the headers of the changes that end or begin here; its path follows.
        for header in item.split("\n")[:-1]:
            old, _, new = header.partition(" ")
            files = found.setdefault((old, new), set())
        files.add(next(items))
    return {change: frozenset(paths) for change, paths in found.items()}


def patch_ids(
    repository: Repository, changes: Iterable[Change], *, timeout: float | None = None
) -> dict[Change, str]:
    """Each change's `git patch-id`, in which white space counts; where nothing changes there is none."""
    asked = list(dict.fromkeys(changes))
    found: dict[Change, str] = {}
    for start in range(0, len(asked), _AT_ONCE):
        diff = _diff(repository, asked[start : start + _AT_ONCE], ("-p", "--full-index"), timeout)
        headers = [(old.decode(), new.decode()) for old, new in _HEADER.findall(diff)]
        # git names each patch by one hash, and two changes may share one: so they get numbers
        first, *texts = _HEADER.split(diff)[::3]
        given = first + b"".join(b"commit %040x%s" % (number, text) for number, text in enumerate(texts))
        rows = run_git(repository.root, "patch-id", "--verbatim", input=given, timeout=timeout).splitlines()
        found |= {headers[int(number, 16)]: id for id, number in map(str.split, rows)}
    return found


def _diff(
    repository: Repository, changes: Sequence[Change], form: Sequence[str], timeout: float | None
) -> bytes:
    if not changes:
        return b""
    plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
    return run_git_bytes(
        repository.root,
        *("diff-tree", "--stdin", "-r", *form, *plain),
        input="".join(f"{old} {new}\n" for old, new in changes).encode(),
        timeout=timeout,
    )
