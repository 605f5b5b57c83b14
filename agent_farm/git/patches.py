"""A change's identity apart from where and when it was made: the text of its diff without line numbers."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Mapping, Sequence

from agent_farm.git.command import run_git_bytes
from agent_farm.git.repository import Repository

_HEADER = re.compile(rb"[0-9a-f]{40,64}( [0-9a-f]{40,64})?\n")
_HUNK = re.compile(rb"@@ -[0-9,]+ \+[0-9,]+ @@")


def patch_ids(
    repository: Repository, commits: Sequence[str], *, timeout: float | None = None
) -> dict[str, str]:
    """Each commit's patch identity; commits that change nothing and merges have none.

    White space counts, unlike in `git patch-id` and `git cherry`: an indentation is code.
    """
    if not commits:
        return {}
    return _identities(_diff(repository, "".join(f"{commit}\n" for commit in commits), timeout))


def span_patch_ids(
    repository: Repository, spans: Mapping[str, tuple[str, str]], *, timeout: float | None = None
) -> dict[str, str]:
    """By name, the identity of the difference between two trees as one patch; none where they are equal."""
    if not spans:
        return {}
    question = "".join(f"{old} {new}\n" for old, new in spans.values())
    found = _identities(_diff(repository, question, timeout))
    keys = {name: f"{old} {new}" for name, (old, new) in spans.items()}
    return {name: found[key] for name, key in keys.items() if key in found}


def _diff(repository: Repository, question: str, timeout: float | None) -> bytes:
    return run_git_bytes(
        repository.root,
        "diff-tree",
        "--stdin",
        "-r",
        "-p",
        "--root",
        "--full-index",
        "--no-renames",
        "--no-ext-diff",
        "--no-textconv",
        "--no-color",
        "--ignore-submodules=none",
        input=question.encode(),
        timeout=timeout,
    )


def _identities(diff: bytes) -> dict[str, str]:
    """By header line. Lines of content begin with a sign or a blank, so a bare hash can only be a header."""
    found: dict[str, str] = {}
    name, files = "", list[bytes]()
    for line in diff.splitlines(keepends=True):
        if _HEADER.fullmatch(line):
            _close(found, name, files)
            name, files = line.decode().strip(), []
        else:
            files.append(line)
    _close(found, name, files)
    return found


def _close(found: dict[str, str], name: str, lines: Sequence[bytes]) -> None:
    if name and lines:
        found[name] = hashlib.sha256(b"".join(_without_place(lines))).hexdigest()


def _without_place(lines: Sequence[bytes]) -> Iterable[bytes]:
    """The lines that make the change what it is; the hashes of whole files only where there is no text."""
    blobs = b""
    for line in lines:
        if line.startswith(b"diff --git "):
            blobs = b""
            yield line
        elif line.startswith(b"index "):
            blobs = line
        elif line.startswith(b"Binary files "):
            yield blobs
            yield line
        elif line.startswith(b"@@ "):
            yield b"@@\n" if _HUNK.match(line) else line
        else:
            yield line
