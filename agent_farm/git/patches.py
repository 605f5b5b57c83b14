"""Compares many pairs of trees in one process: which files differ, and an id for each change's content."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.git.git_process import paths_of, run_git, run_git_bytes
from agent_farm.git.repository import Repository

# The old and the new tree.
Change = tuple[str, str]

_AT_ONCE = 100
_MOST_BYTES = 2_000_000  # of a file whose lines are compared
_MOST_PATHS = 1000
# Lines of content begin with a sign or a blank, so a line of two bare hashes is the header of a change.
_HEADER = re.compile(rf"^({OBJECT_NAME}) ({OBJECT_NAME})$".encode(), re.MULTILINE)


def changed_paths(repository: Repository, changes: Iterable[Change]) -> dict[Change, frozenset[str]]:
    """The files that differ, for each change."""
    found: dict[Change, set[str]] = {}
    for change, _, path in _rows(repository, list(changes)):
        found.setdefault(change, set()).add(path)
    return {change: frozenset(paths) for change, paths in found.items()}


class Patch(Struct, frozen=True):
    """`text` is what `git diff` prints; `large` maps files left out of it to what is known about them."""

    text: str = ""
    large: Mapping[str, str] = field(default_factory=dict)


def patches_of(
    repository: Repository,
    changes: Iterable[Change],
    *,
    context: int = 3,
    paths: Sequence[str] = (),
) -> dict[Change, Patch]:
    """The patch of each change, including lines that attributes hide; `paths` limits it to these files."""
    asked = list(dict.fromkeys(changes))
    only = [f":(top,literal){path}" for path in paths] if len(paths) <= _MOST_PATHS else []
    large = _large(repository, asked, only)
    form = ("-p", "--text", "--find-renames", "--full-index", f"--unified={context}", "--src-prefix=a/")
    found: dict[Change, Patch] = {}
    for group in ([one for one in asked if one not in large], *([one] for one in large)):
        here = large.get(group[0], {}) if group else {}
        without = [f":(top,literal,exclude){path}" for path in here]
        output = _diff(repository, group, (*form, "--dst-prefix=b/", "--", *only, *without))
        _, *parts = _HEADER.split(output)
        for old, new, text in zip(*[iter(parts)] * 3, strict=True):
            shown = text.decode("utf-8", "surrogateescape").strip("\n")
            found[old.decode(), new.decode()] = Patch(shown, here)
        for change in group:
            found.setdefault(change, Patch("", here))
    return found


def _large(
    repository: Repository, changes: Sequence[Change], only: Sequence[str]
) -> dict[Change, dict[str, str]]:
    rows = [(change, facts.split()[2:4], path) for change, facts, path in _rows(repository, changes, only)]
    blobs = dict.fromkeys(blob for _, pair, _ in rows for blob in pair)
    form = "--batch-check=%(objectname) %(objectsize)"
    question = "".join(f"{blob}\n" for blob in blobs)
    answers = run_git(repository.root, "cat-file", form, input=question).splitlines()
    sizes = {blob: int(size) for blob, size in map(str.split, answers) if size.isdecimal()}
    found: dict[Change, dict[str, str]] = {}
    for change, pair, path in rows:
        size = max(sizes.get(blob, 0) for blob in pair)
        if size > _MOST_BYTES:
            found.setdefault(change, {})[path] = f"{size} bytes, {'..'.join(pair)}"
    return found


def patch_ids(repository: Repository, changes: Iterable[Change]) -> dict[Change, str]:
    """The `git patch-id` of each change, where white space counts; a change without a difference has none."""
    asked = list(dict.fromkeys(changes))
    found: dict[Change, str] = {}
    for start in range(0, len(asked), _AT_ONCE):
        diff = _diff(repository, asked[start : start + _AT_ONCE], ("-p", "--no-renames", "--full-index"))
        headers = [(old.decode(), new.decode()) for old, new in _HEADER.findall(diff)]
        # patch-id names patches by a hash, which two changes may share: so they are given numbers
        first, *texts = _HEADER.split(diff)[::3]
        given = first + b"".join(b"commit %040x%s" % (number, text) for number, text in enumerate(texts))
        rows = run_git(repository.root, "patch-id", "--verbatim", input=given).splitlines()
        found |= {headers[int(number, 16)]: id for id, number in map(str.split, rows)}
    return found


def _rows(
    repository: Repository, changes: Sequence[Change], only: Sequence[str] = ()
) -> Iterator[tuple[Change, str, str]]:
    """What happened to each file, in the words of `--raw`."""
    form = ("--raw", "-z", "--no-renames", *(["--", *only] if only else []))
    items = iter(paths_of(_diff(repository, changes, form).decode("utf-8", "surrogateescape")))
    change = ("", "")
    for item in items:
        # an item comes after the headers of the changes that end or begin here
        *headers, facts = item.split("\n")
        for header in headers:
            old, _, new = header.partition(" ")
            change = (old, new)
        yield change, facts, next(items)


def _diff(repository: Repository, changes: Sequence[Change], form: Sequence[str]) -> bytes:
    if not changes:
        return b""
    plain = ("--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
    return run_git_bytes(
        repository.root,
        *("-c", "core.quotePath=false", "diff-tree", "--stdin", "-r", *plain, *form),
        input="".join(f"{old} {new}\n" for old, new in changes),
    )
