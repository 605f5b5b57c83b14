"""A change's identity apart from where and when it was made: the text of its diff without line numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Sequence

from agent_farm.git.command import paths_of, run_git_bytes
from agent_farm.git.repository import Repository

# An old tree and a new one.
Change = tuple[str, str]

_AT_ONCE = 100
_HEADER = re.compile(rb"[0-9a-f]{40} [0-9a-f]{40}\n")
_HUNK = re.compile(rb"@@ -[0-9,]+ \+[0-9,]+ @@")


def changed_paths(
    repository: Repository, changes: Iterable[Change], *, timeout: float | None = None
) -> dict[Change, frozenset[str]]:
    """The files that differ; asked for all changes in one process."""
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
    """Each change's patch identity; where nothing changes there is none.

    White space counts, unlike in `git patch-id` and `git cherry`: an indentation is code.
    """
    asked = list(dict.fromkeys(changes))
    found: dict[Change, str] = {}
    for start in range(0, len(asked), _AT_ONCE):
        diff = _diff(repository, asked[start : start + _AT_ONCE], ("-p", "--full-index"), timeout)
        for header, lines in _sections(diff):
            old, _, new = header.partition(" ")
            if lines:
                found[old, new] = hashlib.sha256(b"".join(_without_place(lines))).hexdigest()
    return found


def _diff(
    repository: Repository, changes: Sequence[Change], form: Sequence[str], timeout: float | None
) -> bytes:
    if not changes:
        return b""
    plain = ("--no-renames", "--no-ext-diff", "--no-textconv", "--no-color", "--ignore-submodules=none")
    return run_git_bytes(
        repository.root,
        "diff-tree",
        "--stdin",
        "-r",
        *form,
        *plain,
        input="".join(f"{old} {new}\n" for old, new in changes).encode(),
        timeout=timeout,
    )


def _sections(diff: bytes) -> Iterator[tuple[str, list[bytes]]]:
    """By header line. Lines of content begin with a sign or a blank, so bare hashes can only be a header."""
    header, lines = "", list[bytes]()
    for line in diff.split(b"\n"):
        if _HEADER.fullmatch(line + b"\n"):
            if header:
                yield header, lines
            header, lines = line.decode(), []
        elif line:
            lines.append(line + b"\n")
    if header:
        yield header, lines


def _without_place(lines: Sequence[bytes]) -> Iterator[bytes]:
    """The lines that make the change what it is; the hashes of whole files only where there is no text."""
    blobs = b""
    for line in lines:
        if line.startswith(b"index "):
            blobs = line
        elif line.startswith(b"Binary files "):
            yield blobs
            yield line
        elif line.startswith(b"@@ "):
            yield b"@@\n" if _HUNK.match(line) else line
        else:
            yield line
