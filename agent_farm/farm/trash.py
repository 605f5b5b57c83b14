"""`.agent-farm/trash/`: what a removed builder leaves until it expires.

`<id>-<epoch>/` holds the `worktree/`, `run/`, and `record.json`, which says how far the removal got: one that
is `moving` is undone if it was interrupted, one that is `removed` is completed.
"""

from __future__ import annotations

import os
import re
import shutil
import time
from collections.abc import Collection, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

from msgspec import Meta, Struct, convert, structs

from agent_farm.builders.record import BuilderRecord, record_from_json, stored_record
from agent_farm.clock_jumps import note_time
from agent_farm.disk import make_directory
from agent_farm.documents import load, store
from agent_farm.errors import AgentFarmError, DamagedFile, UsageError
from agent_farm.farm.deletion import delete_trees, set_out
from agent_farm.farm.farm import Farm
from agent_farm.farm.locks import lock_of
from agent_farm.git.git_process import run_git
from agent_farm.git.keeping import admin_of, drop_refs
from agent_farm.git.sparse import forget_gone
from agent_farm.paths import FarmPaths, is_below

_VERSION = 2
_REFS = "refs/agent-farm/salvage"
_AGE = re.compile(r"(\d+)([smhdw]?)")
_ASIDE = re.compile(r"run-.+-\d{19}")
_Commit = Annotated[str, Meta(pattern=r"\A[0-9a-f]{40,64}\Z")]
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400, "w": 604800, "": 86400}


class Trashed(Struct, frozen=True, forbid_unknown_fields=True):
    """One removed builder. `admin` is the name of git's own directory about its worktree.

    `head` is the commit that was checked out, `attached` whether through the branch. `tip` is where the
    branch was, `settings` git's configuration of it, `salvage` the ref of commits that git would otherwise
    collect. `files` exist in no commit; `left_out` are directories that their tool makes again.
    """

    record: BuilderRecord
    epoch: int
    directory: Path
    admin: str
    is_removed: bool = False
    head: _Commit | None = None
    attached: bool = True
    tip: _Commit | None = None
    settings: tuple[tuple[str, str], ...] = ()
    salvage: str | None = None
    files: tuple[str, ...] = ()
    left_out: tuple[str, ...] = ()

    @property
    def worktree(self) -> Path:
        return self.directory / "worktree"

    @property
    def run(self) -> Path:
        return self.directory / "run"

    @property
    def branch_log(self) -> Path:
        return self.directory / "branch-log"

    @property
    def goes(self) -> bool:
        """Whether the branch is removed with the builder; a branch that the user had before stays."""
        return self.record.new_branch or self.record.branch.startswith("builder/")

    @property
    def ref(self) -> str:
        return f"{_REFS}/{self.record.id}/{self.epoch}"


def new_place(farm: Farm, record: BuilderRecord, admin: str) -> Trashed:
    """A directory for this removal; a second that is taken is moved on to the next free one."""
    make_directory(farm.paths.trash)
    note_time(farm.paths)
    epoch = int(time.time())
    while True:
        kept = Trashed(record, epoch, farm.paths.trash / f"{record.id}-{epoch}", admin)
        epoch += 1
        with suppress(FileExistsError):
            kept.directory.mkdir(mode=0o700)
            return kept


def store_kept(kept: Trashed) -> None:
    """From here on, any other process can finish or undo the removal."""
    facts = structs.asdict(kept)
    del facts["record"], facts["directory"]
    builder = stored_record(kept.record, FarmPaths(kept.directory.parents[2]))
    store(kept.directory / "record.json", {**facts, "builder": builder}, version=_VERSION)


def load_kept(directory: Path) -> Trashed | None:
    """None for a directory that is no removal, or that this `af` does not understand."""
    try:
        facts = load(directory / "record.json", dict[str, Any], version=_VERSION)
        builder = dict(facts.pop("builder", {}))
        record = record_from_json(str(builder.get("id")), builder, FarmPaths(directory.parents[2]))
        kept = convert({**facts, "record": record, "directory": directory}, Trashed)
    except (ValueError, TypeError, DamagedFile, OSError):  # msgspec's errors are ValueErrors
        return None
    # A directory with another name is not ours to touch.
    return kept if directory.name == f"{record.id}-{kept.epoch}" and _is_sound(kept) else None


def _is_sound(kept: Trashed) -> bool:
    return (
        all(is_below(path) for path in (*kept.files, *kept.left_out))
        and kept.salvage in (None, kept.ref)
        and all(key.startswith(f"branch.{kept.record.branch}.") for key, _ in kept.settings)
    )


def list_kept(farm: Farm, id: str | None = None) -> list[Trashed]:
    """Removed builders, newest first."""
    found = [kept for kept in _all(farm) if kept.is_removed and (id is None or kept.record.id == id)]
    return sorted(found, key=lambda kept: kept.epoch, reverse=True)


def begun_removals(farm: Farm, id: str | None = None) -> list[Trashed]:
    """Interrupted removals, whose builder still has its record."""
    records = farm.registry.read()
    return [
        kept
        for kept in _all(farm)
        if (id is None or kept.record.id == id) and _is_unfinished(kept, records.get(kept.record.id))
    ]


def _is_unfinished(kept: Trashed, record: BuilderRecord | None) -> bool:
    if not kept.is_removed:
        return True
    same = record is not None and record.created_at == kept.record.created_at
    return same and record is not None and record.state != "creating" and kept.worktree.is_dir()


def _all(farm: Farm) -> list[Trashed]:
    places = sorted(farm.paths.trash.glob("[!.]*/record.json"))
    return [kept for file in places if (kept := load_kept(file.parent)) is not None]


def not_understood(farm: Farm) -> list[Path]:
    """Entries in the trash that are neither removals nor anything else that `af` put there."""
    return [
        path
        for path in sorted(farm.paths.trash.glob("[!.]*"))
        if not _ASIDE.fullmatch(path.name) and load_kept(path) is None and not is_empty_place(path)
    ]


def is_empty_place(path: Path) -> bool:
    """Left by a removal that was killed at its very start: it contains at most a part of its record."""
    with suppress(OSError):
        return all(one.startswith(".record.json.") and one.endswith(".tmp") for one in os.listdir(path))
    return False


def drop_empty_place(path: Path) -> None:
    if is_empty_place(path):
        shutil.rmtree(path)


def set_aside(farm: Farm, id: str) -> Path:
    """A name in the trash for a run directory by itself, which expires like the rest."""
    make_directory(farm.paths.trash)
    return farm.paths.trash / f"run-{id}-{time.time_ns()}"


class Expired(Struct, frozen=True):
    """`gone` is deleted for good; `left` are paths that could not be deleted, `busy` what is in use."""

    gone: tuple[Trashed, ...]
    left: tuple[Path, ...] = ()
    busy: tuple[AgentFarmError, ...] = ()


def expire(farm: Farm, age: float) -> Expired:
    """Delete for good what was removed at least `age` seconds ago."""
    limit = time.time() - age
    gone, doomed, busy = list[Trashed](), list[Path](), list[AgentFarmError]()
    cut_short = list(farm.paths.trash.glob(".*.deleting"))  # by a crash, or another process is at it
    # a second removal in the same second has a later epoch, and `0` includes it
    due = [kept for kept in list_kept(farm) if kept.epoch <= limit or not age]
    for done, kept in enumerate(due):
        farm.step("Taking out of the trash", done, len(due))
        id = kept.record.id
        try:
            with lock_of(farm, id):
                record = farm.registry.read().get(id)
                if load_kept(kept.directory) == kept and not _is_unfinished(kept, record):
                    doomed.append(_expire(farm, kept))
                    gone.append(kept)
                if id not in farm.registry.read().ids:
                    farm.paths.builder_lock(id).unlink(missing_ok=True)
        except (AgentFarmError, OSError) as error:
            busy.append(error if isinstance(error, AgentFarmError) else AgentFarmError(str(error)))
    old = [path for path in _aside(farm) if int(path.name.rpartition("-")[2]) / 1e9 <= limit]
    for path in old:
        with suppress(OSError):  # another process has just taken it
            doomed.append(set_out(path))
    busy += _expire_salvages(farm, limit, {kept.ref for kept in gone})
    left = [path for path in delete_trees([*doomed, *cut_short]) if path not in cut_short]
    return Expired(tuple(gone), tuple(left), tuple(busy))


def _expire(farm: Farm, kept: Trashed) -> Path:
    """git's directory goes first: without it nothing can be restored, but what is left is still listed."""
    admin = admin_of(farm.repository, kept.admin, kept.worktree)
    if admin is not None:
        shutil.move(admin, kept.directory / "admin")
        with suppress(OSError):
            admin.parent.rmdir()  # git, too, removes it with the last worktree
        forget_gone(farm.repository)
    return set_out(kept.directory)


def _expire_salvages(farm: Farm, limit: float, gone: Collection[str]) -> Sequence[AgentFarmError]:
    """Refs of builders that are gone for good, or have been restored since."""
    rows = run_git(farm.root, "for-each-ref", "--format=%(refname) %(objectname)", f"{_REFS}/").splitlines()
    old = dict[str, str]()
    for ref, commit in (row.rsplit(" ", 1) for row in rows):
        id, _, epoch = ref.removeprefix(f"{_REFS}/").rpartition("/")
        is_due = ref in gone or (epoch.isdecimal() and int(epoch) <= limit)
        if is_due and not (farm.paths.trash / f"{id}-{epoch}").exists():
            old[ref] = commit
    return drop_refs(farm.repository, old)


def _aside(farm: Farm) -> list[Path]:
    return [path for path in farm.paths.trash.glob("*-*") if _ASIDE.fullmatch(path.name)]


def parse_age(text: str) -> float:
    """`30d`, `12h`, `0`; a number alone means days."""
    match = _AGE.fullmatch(text.strip())
    if match is None:
        raise UsageError(f"--expire: {text!r} is not a valid age", why="Write 30d, 12h, 45m or 0.")
    return int(match[1]) * _SECONDS[match[2]]


def with_state(kept: Trashed, **facts: Any) -> Trashed:
    """Changes are stored at once."""
    changed = structs.replace(kept, **facts)
    store_kept(changed)
    return changed
