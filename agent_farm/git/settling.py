"""Finishes or undoes a landing that was interrupted.

The branch decides: if it has moved, the index follows; if not, the files go back. A file that neither
commit contains, not even a part of it, was changed by somebody: it is left alone and named.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field

from agent_farm.builders.ref_names import ObjectName
from agent_farm.disk import cannot_write, stale_temporaries
from agent_farm.documents import load, store
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import (
    Change,
    Entry,
    blobs_on_disk,
    changes_between,
    index_entries,
    kind_on_disk,
    remove_file,
)
from agent_farm.git.index_lock import index_lock, is_marked, locked_index
from agent_farm.git.left_locks import drop_landings_locks

_BLOCK = 512  # disks and kernels write at least this many bytes at a time
_Text = Annotated[str, Meta(pattern=r"\A[^\0]{1,300}\Z")]


def _new_mark() -> str:
    return f"agent-farm {os.urandom(16).hex()}\n"


class Move(Struct, frozen=True, forbid_unknown_fields=True):
    """`branch`, which is checked out, moves from `before` to `after`, to land `what`.

    `mark` is written into the index lock that the move takes.
    """

    what: _Text
    branch: _Text
    before: ObjectName
    after: ObjectName
    mark: _Text = field(default_factory=_new_mark)


class SettledMove(Struct, frozen=True):
    """Whether the branch had moved, and the files that were left because somebody changed them."""

    move: Move
    landed: bool
    left: tuple[str, ...]

    @property
    def told(self) -> str:
        move = self.move
        done = f"landed on {move.branch}" if self.landed else f"is undone; {move.branch} did not move"
        own = f"; left as they are: {', '.join(self.left)}" if self.left else ""
        return f"{move.what} {done}{own}"


def move_file(checkout: Checkout) -> Path:
    return checkout.git_dir / "agent-farm-merge.json"


def next_index(checkout: Checkout) -> Path:
    """Where the new index is prepared; it replaces the index in one step."""
    return checkout.git_dir / "agent-farm-index"


def write_move(checkout: Checkout, move: Move) -> None:
    store(move_file(checkout), move)


def forget_move(checkout: Checkout) -> None:
    index = next_index(checkout)
    for file in (index, index.with_name(f"{index.name}.lock"), move_file(checkout)):
        file.unlink(missing_ok=True)


def half_written(checkout: Checkout) -> list[Path]:
    """Notes of landings whose writers were killed before they began."""
    name = f".{move_file(checkout).name}."
    return [path for path in stale_temporaries(checkout.git_dir) if path.name.startswith(name)]


def read_move(checkout: Checkout) -> Move | None:
    """The landing that was interrupted there, or is under way: the landings' lock tells which."""
    try:
        return load(move_file(checkout), Move, about="It describes an interrupted merge.")
    except FileNotFoundError:
        return None


def settle_interrupted_move(checkout: Checkout) -> SettledMove | None:
    """The caller holds the lock for landings, so that none is under way."""
    move = read_move(checkout)
    if move is None:
        return None
    kept_lock = is_marked(index_lock(checkout), move.mark)
    begun = move_file(checkout).lstat().st_mtime_ns
    drop_landings_locks(checkout, move.branch, move.before, move.after, begun=begun)
    with locked_index(checkout, move.mark):
        settled = settle(checkout, move, at_once=False, kept_lock=kept_lock)
    forget_move(checkout)
    return settled


def settle(checkout: Checkout, move: Move, *, at_once: bool = True, kept_lock: bool = True) -> SettledMove:
    """Finish or undo `move`, under the lock of the index.

    Without `kept_lock` somebody may have changed the index in the meantime. `at_once` means that git stopped
    just now, so that a partly written file can only be its own.
    """
    head = checkout.head().commit
    changes = changes_between(checkout, move.before, move.after)
    if head == move.after:
        _install_index(checkout, changes, kept_lock)
        wanted = {path: change.after for path, change in changes.items()}
    else:
        since = changes_between(checkout, move.before, head) if head != move.before else {}
        wanted = {path: since[path].after if path in since else old.before for path, old in changes.items()}
    left = _Files(checkout, changes, wanted, head == move.after, 1 if at_once else _BLOCK).restore()
    landed = head == move.after or _has_landed(checkout, move)
    return SettledMove(move, landed, tuple(sorted(left)))


def _has_landed(checkout: Checkout, move: Move) -> bool:
    """True even if somebody has committed or switched since."""
    question = ("merge-base", "--is-ancestor", move.after, f"refs/heads/{move.branch}")
    return checkout.ask(*question)[0] == 0


def _install_index(checkout: Checkout, changes: Mapping[str, Change], kept_lock: bool) -> None:
    staged = index_entries(checkout)
    if all(staged.get(path, (None, False))[0] == change.after for path, change in changes.items()):
        return
    if kept_lock and next_index(checkout).is_file():
        os.replace(next_index(checkout), checkout.index)
        return
    lines = []
    for path, (before, after) in changes.items():
        if staged.get(path, (None, False))[0] == before:
            mode, blob = after or ("0", "0" * len(checkout.head().commit))
            lines.append(f"{mode} {blob}\t{path}\0")
    copy_index(checkout)
    env = {"GIT_INDEX_FILE": os.fspath(next_index(checkout))}
    checkout.run("update-index", "-z", "--index-info", input="".join(lines), env=env)
    checkout.run("update-index", "-q", "--refresh", env=env, ok=(0, 1))
    os.replace(next_index(checkout), checkout.index)


def copy_index(checkout: Checkout) -> None:
    """Copy the index with its time, by which git knows which files may have changed since."""
    target = next_index(checkout)
    try:
        facts = checkout.index.stat()
        target.write_bytes(checkout.index.read_bytes())
        os.utime(target, ns=(facts.st_atime_ns, facts.st_mtime_ns))
    except FileNotFoundError:
        target.unlink(missing_ok=True)
    except OSError as error:
        raise cannot_write(target, error) from error


class _Files(Struct, frozen=True):
    """Files that a landing was about to change, and what they should be.

    If it has `landed`, all of them had been written, and only one truncated by a power failure is ours to
    mend. A truncated file is a multiple of `block` bytes long.
    """

    checkout: Checkout
    changes: Mapping[str, Change]
    wanted: Mapping[str, Entry | None]
    landed: bool
    block: int

    def restore(self) -> list[str]:
        """Restore the files; returns those that somebody changed, which stay as they are."""
        sparse = {path for path, (_, left_out) in index_entries(self.checkout).items() if left_out}
        files = [path for path, change in self.changes.items() if not change.is_submodule]
        there = blobs_on_disk(self.checkout, files)
        remove, write, left = [], [], []
        for path in files:
            entry, found = self.wanted[path], there.get(path)
            if found == entry or (found is None and path in sparse):
                continue
            if not self._is_ours(path, found):
                left.append(path)
            elif entry is None:
                remove.append(path)
            else:
                write.append(path)
        for path in remove:
            remove_file(self.checkout.path, path)
        return [*left, *_write(self.checkout, write, there)]

    def _is_ours(self, path: str, found: Entry | None) -> bool:
        change = self.changes[path]
        if found is None:  # git may have removed what was in the way before it wrote the file
            return not self.landed and kind_on_disk(self.checkout, path) != "other"
        same = any(entry is not None and entry.blob == found.blob for entry in change)
        return not self.landed if same else self._is_part(path, change)

    def _is_part(self, path: str, change: Change) -> bool:
        """Whether the file is the beginning of what one of the two commits contains."""
        place = self.checkout.path / path
        size = place.lstat().st_size
        if place.is_symlink() or size % self.block:
            return False
        for entry in change:
            if entry is None:
                continue
            whole = self.checkout.run_bytes("cat-file", "--filters", f"--path={path}", entry.blob)
            if size < len(whole) and place.read_bytes() == whole[:size]:
                return True
        return False


def _write(checkout: Checkout, paths: list[str], there: Mapping[str, Entry]) -> list[str]:
    """Write files from the index, which has the new contents; returns those that a user's file blocks."""
    free: list[str] = []
    left: list[str] = []
    for path in paths:
        if kind_on_disk(checkout, path) == "directory":
            with suppress(OSError):
                (checkout.path / path).rmdir()
        kind = kind_on_disk(checkout, path)
        free_now = kind == "nothing" or (path in there and kind in ("file", "link"))
        (free if free_now else left).append(path)
    if free:
        names = "".join(f"{path}\0" for path in free)
        checkout.run("checkout-index", "--force", "--quiet", "-z", "--stdin", input=names)
    return left
