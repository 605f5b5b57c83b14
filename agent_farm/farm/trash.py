"""`.agent-farm/trash/`: what a removed builder leaves behind until it is expired."""

from __future__ import annotations

import json
import os
import re
import shutil
import stat
import subprocess
import sys
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.stored_record import record_from_json, stored_record
from agent_farm.disk import load_json, make_directory, replace_file
from agent_farm.errors import DamagedFile, UsageError
from agent_farm.farm import deletion
from agent_farm.farm.farm import Farm
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.salvage import delete_salvage, list_salvages, salvage_ref
from agent_farm.paths import FarmPaths, is_below

_MANY_FILES = 2000
_AGE = re.compile(r"(\d+)([smhdw]?)")
_ASIDE = re.compile(r"(run|half)-.+-\d{19}")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "": 86400}


@dataclass(frozen=True, slots=True)
class Kept:
    """One removed builder: `directory` holds its record, run files and whatever git could not keep.

    `tip` is where its branch was, `remaining` the paths of the worktree that exist nowhere else,
    `left_out` the directories that their tool makes again.
    """

    record: BuilderRecord
    epoch: int
    directory: Path
    tip: str | None = None
    remaining: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def ref(self) -> str:
        return salvage_ref(self.record.id, self.epoch)

    @property
    def worktree(self) -> Path:
        return self.directory / "worktree"

    @property
    def run(self) -> Path:
        return self.directory / "run"


def new_place(farm: Farm, record: BuilderRecord) -> Kept:
    """A directory of its own for this removal; a taken second moves on to the next free one."""
    make_directory(farm.paths.trash)
    epoch = int(time.time())
    while True:
        kept = Kept(record, epoch, farm.paths.trash / f"{record.id}-{epoch}")
        epoch += 1
        if _has_salvage(farm, kept):  # of a removal in this very second that was undone
            continue
        with suppress(FileExistsError):
            kept.directory.mkdir(mode=0o700)
            return kept


def _has_salvage(farm: Farm, kept: Kept) -> bool:
    return resolve_commits(farm.repository, [kept.ref])[kept.ref] is not None


def store_kept(kept: Kept) -> None:
    """From here on the removal can be finished, and undone, by any other process."""
    document = {
        "version": 1,
        "epoch": kept.epoch,
        "tip": kept.tip,
        "remaining": kept.remaining,
        "left_out": kept.left_out,
        "builder": stored_record(kept.record, FarmPaths(kept.directory.parents[2])),
    }
    replace_file(kept.directory / "record.json", json.dumps(document, indent=1) + "\n")


def list_kept(farm: Farm, id: str | None = None) -> list[Kept]:
    """Removed builders, newest first."""
    found = [
        kept
        for file in farm.paths.trash.glob("[!.]*/record.json")
        if (kept := _load(file, farm.paths)) and (id is None or kept.record.id == id)
    ]
    return sorted(found, key=lambda kept: kept.epoch, reverse=True)


def thin_out(kept: Kept) -> None:
    """Delete the removed worktree except the paths that exist nowhere else; may be begun again."""
    saved = kept.directory / "kept"
    if kept.worktree.is_dir():
        for path in kept.remaining:
            target = saved / path
            if os.path.lexists(kept.worktree / path) and not os.path.lexists(target):
                make_directory(target.parent)
                move(kept.worktree / path, target)
        delete_tree(kept.worktree)
    if saved.exists():
        os.rename(saved, kept.worktree)
    admin = kept.directory / "admin"
    if admin.is_dir() and not (admin / "modules").is_dir():
        shutil.rmtree(admin, ignore_errors=True)


def move(path: Path, target: Path) -> None:
    """A directory moves, and lets go of what is in it, only if it may be written; both keep their modes."""
    parent, mode = path.parent.stat().st_mode, path.lstat().st_mode
    protected = stat.S_ISDIR(mode) and not mode & stat.S_IWUSR
    if not parent & stat.S_IWUSR:
        path.parent.chmod(parent | stat.S_IWUSR)
    if protected:
        path.chmod(mode | stat.S_IWUSR)
    os.rename(path, target)
    if protected:
        target.chmod(mode)
    if not parent & stat.S_IWUSR:
        path.parent.chmod(parent)


def delete_tree(path: Path) -> None:
    """Gone from its place at once; a large tree is deleted in the background."""
    # a name of its own: an earlier tree of this name may still be on its way out
    doomed = path.with_name(f".{path.name}.{time.time_ns()}.deleting")
    os.rename(path, doomed)
    if _has_many_files(doomed):
        subprocess.Popen(
            [sys.executable, "-I", "-S", deletion.__file__, str(doomed)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            start_new_session=True,
        )
    else:
        deletion.delete(str(doomed))


def set_aside(farm: Farm, kind: str, id: str) -> Path:
    """A name in the trash for what cannot be restored by itself; it is expired like the rest."""
    make_directory(farm.paths.trash)
    return farm.paths.trash / f"{kind}-{id}-{time.time_ns()}"


def expire(farm: Farm, age: float) -> list[Kept]:
    """Delete for good what was removed at least `age` seconds ago."""
    limit = time.time() - age
    # a second removal within one second bears the next one: `0` means that one, too
    old = [kept for kept in list_kept(farm) if kept.epoch <= limit or not age]
    for kept in old:
        delete_tree(kept.directory)
    for path in _aside(farm):
        if int(path.name.rpartition("-")[2]) / 1e9 <= limit:
            delete_tree(path)
    for salvaged in list_salvages(farm.repository):  # also of builders that were restored since
        id, epoch = salvaged.ref.split("/")[-2:]
        if salvaged.at.timestamp() <= limit and not (farm.paths.trash / f"{id}-{epoch}").exists():
            delete_salvage(farm.repository, salvaged)
    return old


def _aside(farm: Farm) -> list[Path]:
    return [path for path in farm.paths.trash.glob("*-*") if _ASIDE.fullmatch(path.name)]


def parse_age(text: str) -> float:
    """`30d`, `12h`, `0`; a number alone is days."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--expire: {text!r} is no age", why="Write 30d, 12h, 45m or 0.")
    return int(match[1]) * _SECONDS[match[2]]


def _has_many_files(path: Path) -> bool:
    count = 0
    for _, _, files in os.walk(path):
        count += len(files)
        if count > _MANY_FILES:
            return True
    return False


def _load(file: Path, paths: FarmPaths) -> Kept | None:
    """None for a directory that is not a whole removal: doctor tells of those."""
    try:
        document: Any = load_json(file)
        record = record_from_json(str(document["builder"]["id"]), document["builder"], paths)
        remaining, left_out = tuple(document["remaining"]), tuple(document.get("left_out", ()))
        kept = Kept(record, int(document["epoch"]), file.parent, document["tip"], remaining, left_out)
    except (DamagedFile, KeyError, TypeError, ValueError, AttributeError, OSError):
        return None
    named = file.parent.name == f"{record.id}-{kept.epoch}"
    return kept if named and all(is_below(path) for path in (*remaining, *left_out)) else None
