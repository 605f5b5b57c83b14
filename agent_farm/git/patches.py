"""What changes, of many changes in one process: the files, and an identity apart from where and when."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence

from msgspec import Struct, field

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.git.git_process import paths_of, run_git, run_git_bytes
from agent_farm.git.repository import Repository

# An old tree and a new one.
Change = tuple[str, str]

_AT_ONCE = 100
_MOST_BYTES = 2_000_000  # of a file whose lines are compared
_MOST_PATHS = 1000
# Lines of content begin with a sign or a blank, so bare hashes can only be the header of a change.
_HEADER = re.compile(rf"^({OBJECT_NAME}) ({OBJECT_NAME})$".encode(), re.MULTILINE)


def changed_paths(repository: Repository, changes: Iterable[Change]) -> dict[Change, frozenset[str]]:
    """The files that differ."""
    found: dict[Change, set[str]] = {}
    for change, _, path in _rows(repository, list(changes)):
        found.setdefault(change, set()).add(path)
    return {change: frozenset(paths) for change, paths in found.items()}


class Patch(Struct, frozen=True):
    """`text` is as `git diff` prints it; `large` are files that it leaves out, with what is known of it."""

    text: str = ""
    large: Mapping[str, str] = field(default_factory=dict)


def patches_of(
    repository: Repository,
    changes: Iterable[Change],
    *,
    context: int = 3,
    paths: Sequence[str] = (),
) -> dict[Change, Patch]:
    """Patches of all lines, even if attributes hide them; a moved file counts as one. `paths`: only these."""
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
    """Each change's `git patch-id`, in which white space counts; where nothing changes there is none."""
    asked = list(dict.fromkeys(changes))
    found: dict[Change, str] = {}
    for start in range(0, len(asked), _AT_ONCE):
        diff = _diff(repository, asked[start : start + _AT_ONCE], ("-p", "--no-renames", "--full-index"))
        headers = [(old.decode(), new.decode()) for old, new in _HEADER.findall(diff)]
        # git names each patch by one hash, and two changes may share one: so they get numbers
        first, *texts = _HEADER.split(diff)[::3]
        given = first + b"".join(b"commit %040x%s" % (number, text) for number, text in enumerate(texts))
        rows = run_git(repository.root, "patch-id", "--verbatim", input=given).splitlines()
        found |= {headers[int(number, 16)]: id for id, number in map(str.split, rows)}
    return found


def _rows(
    repository: Repository, changes: Sequence[Change], only: Sequence[str] = ()
) -> Iterator[tuple[Change, str, str]]:
    """What happened to each file, as `--raw` says it."""
    form = ("--raw", "-z", "--no-renames", *(["--", *only] if only else []))
    items = iter(paths_of(_diff(repository, changes, form).decode("utf-8", "surrogateescape")))
    change = ("", "")
    for item in items:
        # after the headers of the changes that end or begin here
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
