"""What is at a path: in two commits, in the index, and on disk."""

from __future__ import annotations

import os
import stat
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from functools import lru_cache
from pathlib import Path
from typing import NamedTuple

from agent_farm.git.checkout import Checkout
from agent_farm.git.git_process import paths_of, run_git
from agent_farm.git.repository import Repository

_NOTHING = "000000"
_GITLINK = "160000"
_SYMLINK = "120000"


class Entry(NamedTuple):
    """A file in a commit or the index; `mode` is git's."""

    mode: str
    blob: str

    @property
    def is_submodule(self) -> bool:
        return self.mode == _GITLINK


class Change(NamedTuple):
    """A path in two commits; None in the one that does not have it."""

    before: Entry | None
    after: Entry | None

    @property
    def is_submodule(self) -> bool:
        return any(entry is not None and entry.is_submodule for entry in self)


@lru_cache(maxsize=4)
def changes_between(checkout: Checkout, before: str, after: str) -> Mapping[str, Change]:
    """The paths that differ. Takes hashes of commits, not names, so that the answer cannot change."""
    output = checkout.run("diff-tree", "-r", "-z", "--raw", "--no-renames", "--no-abbrev", before, after)
    items = iter(paths_of(output))
    found = {}
    for facts in items:
        old, new, old_blob, new_blob, _ = facts.removeprefix(":").split(" ")
        found[next(items)] = Change(_entry(old, old_blob), _entry(new, new_blob))
    return found


def index_entries(checkout: Checkout) -> dict[str, tuple[Entry | None, bool]]:
    """For each path, what is staged (None if unmerged), and whether sparse checkout leaves it out."""
    found: dict[str, tuple[Entry | None, bool]] = {}
    output = checkout.run("ls-files", "-z", "-t", "--stage")
    for line in paths_of(output):
        facts, _, path = line.partition("\t")
        tag, mode, blob, stage = facts.split(" ")
        found[path] = (Entry(mode, blob) if stage == "0" else None, tag == "S")
    return found


def blobs_on_disk(checkout: Checkout, paths: Iterable[str]) -> dict[str, Entry]:
    """What git would commit at each path; those that are neither a file nor a symbolic link are left out."""
    found, files = {}, []
    for path in paths:
        kind = kind_on_disk(checkout, path)
        if kind == "link":
            found[path] = Entry(_SYMLINK, _blob(os.fsencode(os.readlink(checkout.path / path))))
        elif kind == "file":
            files.append(path)
    names = "".join(map(quoted, files))
    blobs = checkout.run("hash-object", "--stdin-paths", input=names).split() if files else []
    for path, blob in zip(files, blobs, strict=True):
        mode = (checkout.path / path).lstat().st_mode
        found[path] = Entry("100755" if mode & stat.S_IXUSR else "100644", blob)
    return found


def kind_on_disk(checkout: Checkout, path: str) -> str:
    """`file`, `link`, `directory`, `other` (a FIFO, say), `blocked` (by a parent), or `nothing`."""
    where = checkout.path
    for part in os.fspath(path).split("/")[:-1]:
        where = where / part
        try:
            mode = where.lstat().st_mode
        except FileNotFoundError:
            return "nothing"
        except OSError:
            return "blocked"
        if not stat.S_ISDIR(mode):
            return "blocked"
    try:
        mode = (checkout.path / path).lstat().st_mode
    except FileNotFoundError:
        return "nothing"
    kinds = {stat.S_IFREG: "file", stat.S_IFLNK: "link", stat.S_IFDIR: "directory"}
    return kinds.get(stat.S_IFMT(mode), "other")


def remove_file(root: Path, path: str) -> None:
    """Remove it, and the directories that this leaves empty."""
    place = root / path
    with suppress(FileNotFoundError, NotADirectoryError):
        place.unlink()
    with suppress(OSError):
        for parent in place.parents:
            if parent == root:
                break
            parent.rmdir()


def _entry(mode: str, blob: str) -> Entry | None:
    return None if mode == _NOTHING else Entry(mode, blob)


def _blob(content: bytes) -> str:
    import hashlib  # loading OpenSSL takes 2 ms, and links are rare

    return hashlib.sha1(b"blob %d\0" % len(content) + content, usedforsecurity=False).hexdigest()


def quoted(path: str) -> str:
    """Quoted as git does, so that line breaks and bytes that are not UTF-8 survive."""
    return '"' + "".join(f"\\{byte:03o}" for byte in os.fsencode(path)) + '"\n'


def tree_bytes(repository: Repository, commit: str, directories: Sequence[str] = ()) -> int:
    """The size of all files of a commit, or of those in `directories`; submodules do not count."""
    words = ("--literal-pathspecs", "ls-tree", "-r", "--full-tree", "--format=%(objectsize)", commit, "--")
    sizes = run_git(repository.root, *words, *directories).split()
    return sum(int(size) for size in sizes if size.isdecimal())
