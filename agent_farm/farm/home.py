"""Where a farm's home is, and what to do if it is found somewhere else.

`.agent-farm/home.json` names the farm, the path of its main checkout, and the mount namespace in which that
path was seen. A farm found under another path was

- reached by a second path: the same directory exists under the first one, which is then used; - copied: the
original is still in its place. The copy becomes a separate farm, whose builders do not run; - moved: nothing
is left in the old place. Worktrees, ports and records follow; - mounted elsewhere (in a container): the old
path cannot be seen from here, and git's paths cannot be right on both sides. It is refused, and nothing
changes, until somebody says that it was moved.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from agent_farm.builders.events import Exit
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Registry
from agent_farm.disk import file_lock
from agent_farm.documents import load, load_if_whole, store
from agent_farm.errors import AgentFarmError, DamagedFile, NewerFile
from agent_farm.git.reconnecting import reconnect_others, reconnect_worktrees
from agent_farm.git.repository import Repository, find_repository
from agent_farm.launch import as_command
from agent_farm.paths import STATE_NAME, WORKTREES_NAME, FarmPaths, RunPaths
from agent_farm.ports import rename_farm, reserve_ports
from agent_farm.processes import processes_of_runs

_NAMESPACE = Path("/proc/self/ns/mnt")
_LOCK_SECONDS = 30.0
# Copied, these would make the original's server, token, logins and machines look like the copy's.
_OF_THE_ORIGINAL = ("server.json", "architect.token", "dashboard-logins.json", "fleet.json")

Change = Literal["moved", "copied"]
_Name = Annotated[str, Meta(pattern=r"\A[a-z0-9-]+\Z")]


class Home(Struct, frozen=True):
    """home.json, which names directories that are read, and sessions that are ended.

    `begun` are places where the farm was found, but to which it has not completely moved yet.
    """

    root: Path
    farm: str
    namespace: str
    former: tuple[_Name, ...] = ()
    begun: tuple[Path, ...] = ()

    def is_settled_in(self, root: Path) -> bool:
        return self.root == root and not self.begun


class Place(Struct, frozen=True):
    """The farm to open; `told` are messages about what was done to it."""

    repository: Repository
    paths: FarmPaths
    told: tuple[str, ...] = ()


def settle_home(repository: Repository, *, was_moved: bool = False) -> Place:
    """Every command that opens a farm calls this. `was_moved`: a person says so, whatever can be seen."""
    paths = FarmPaths(repository.root, called=repository.name_in(repository.root))
    if not paths.state.is_dir():
        return Place(repository, paths)
    home = load_home(paths)
    if home is None:
        return _settle_in(repository, paths)
    if home.is_settled_in(repository.root):
        return Place(repository, paths.once_called(*home.former))
    if home.root != repository.root and _is_same(home.root / STATE_NAME, paths.state):
        return settle_home(_seen_from(repository, home.root))
    with file_lock(paths.locks / "home.lock", wait=_LOCK_SECONDS):
        home = load_home(paths) or home
        if home.is_settled_in(repository.root):  # another process was first
            return Place(repository, paths.once_called(*home.former))
        return _change_home(repository, paths, home, was_moved)


def load_home(paths: FarmPaths) -> Home | None:
    """None if it cannot be read: such a file is written again."""
    try:
        return load(paths.home, Home)
    except NewerFile:
        raise
    except (OSError, DamagedFile):
        return None


def _settle_in(repository: Repository, paths: FarmPaths) -> Place:
    """The first time, or the first time after an af that did not record this."""
    with suppress(AgentFarmError):  # on a full or read-only disk, the next command does it
        store(paths.home, Home(repository.root, os.urandom(8).hex(), _namespace()))
    return Place(repository, paths)


def _change_home(repository: Repository, paths: FarmPaths, home: Home, was_moved: bool) -> Place:
    if home.root == repository.root:  # it was somewhere else for a while
        return _follow(repository, paths, home)
    original = load_home(FarmPaths(home.root))
    if original is not None and original.farm == home.farm and original.root == home.root and not was_moved:
        return _leave_original(repository, paths, home)
    if home.namespace != _namespace() and not was_moved:
        raise AgentFarmError(
            f"This farm's home is {home.root}, which cannot be seen from here",
            why="It may be mounted elsewhere, in a container for example. Worktrees are registered by"
            " their paths; what is right here would be wrong there, so nothing is changed.",
            hint=as_command("af", "doctor", "--moved"),
        )
    elsewhere = None if was_moved else _where_it_runs(repository.root, paths)
    if elsewhere is not None:
        before = structs.replace(home, root=elsewhere, begun=(home.root, *home.begun))
        return _leave_original(repository, paths, before)
    return _follow(repository, paths, home)


def _where_it_runs(root: Path, paths: FarmPaths) -> Path | None:
    """Where the farm's builders run: it was moved there unnoticed, and this is a copy of it."""
    with suppress(AgentFarmError):
        runs = {record.run: id for id, record in Registry(paths).read().items()}
        for run, pids in processes_of_runs(runs).items():
            for pid in pids:
                for place in _farms_above(pid, runs[run]):
                    if place != root and (place / STATE_NAME).is_dir():
                        return place
    return None


def _farms_above(pid: int, id: str) -> list[Path]:
    try:
        directory = Path(os.readlink(f"/proc/{pid}/cwd"))
    except OSError:
        return []
    worktrees = (one for one in (directory, *directory.parents) if one.name == id)
    return [one.parent.parent for one in worktrees if one.parent.name == WORKTREES_NAME]


def _follow(repository: Repository, paths: FarmPaths, home: Home) -> Place:
    """Follow a move. Each step can be repeated, because the new home is recorded last."""
    places = _begin(repository, paths, home)
    trees = reconnect_worktrees(repository, places)
    if home.root == repository.root or not (home.root / ".git").exists():
        reconnect_others(repository)
    with suppress(AgentFarmError):  # that file is the user's, not the farm's: without it, new ports are found
        for place in places:
            rename_farm(place, repository.root)
    names = (FarmPaths(place, called=repository.name_in(place)).farm_name for place in places)
    former = tuple(dict.fromkeys((*names, *home.former)))
    now = paths.once_called(*former)
    running = [record for record in Registry(now).read().values() if record.state == "running"]
    store(now.home, Home(repository.root, home.farm, _namespace(), former))
    told = [f"The farm was moved from {next(iter(places), home.root)}; {_worktrees(len(trees))} followed."]
    return Place(repository, now, (*told, *_notes(now, running)))


def _notes(paths: FarmPaths, records: list[BuilderRecord]) -> list[str]:
    """What a person should do about builders that ran before the move, running or not."""
    alive = processes_of_runs(record.run for record in records)
    there = sorted(record.id for record in records if record.run in alive)
    others = [record for record in records if record.run not in alive]
    ends = {record.id: load_if_whole(RunPaths(paths.run(record.id)).exit, Exit) for record in others}
    lost = [record.id for record in others if (end := ends[record.id]) is None or end.run != record.run]
    notes = []
    if there:
        again = as_command("af", "stop", *there)
        notes.append(f"Still running, and reporting to the old place: {again}, then af resume.")
    if lost:
        notes.append(f"No longer running: {', '.join(sorted(lost))}. af recover starts them again.")
    return notes


def _begin(repository: Repository, paths: FarmPaths, home: Home) -> list[Path]:
    """The places that git may name; recorded first, as the farm may be moved again before this is done."""
    begun = tuple(dict.fromkeys((*home.begun, repository.root)))
    store(paths.home, structs.replace(home, begun=begun))
    return [place for place in dict.fromkeys((home.root, *begun)) if place != repository.root]


def _leave_original(repository: Repository, paths: FarmPaths, home: Home) -> Place:
    """A copy becomes a separate farm, with the same work and nothing running."""
    if (repository.root / ".git").is_file():
        raise AgentFarmError(
            f"{repository.root} is a copy of {home.root} and shares its git directory",
            why=f"Both would be the same farm. The builders are those of {home.root}.",
            hint=as_command("git", "clone", home.root, f"{repository.root}-clone"),
        )
    trees = reconnect_worktrees(repository, _begin(repository, paths, home))
    for directory in (paths.state, *(paths.state / "butlers").glob("*")):
        for name in _OF_THE_ORIGINAL:
            (directory / name).unlink(missing_ok=True)
    with Registry(paths).edit() as records:
        for id, record in list(records.items()):
            if record.state == "queued":  # the original starts it
                del records[id]
                continue
            records[id] = structs.replace(
                record,
                state="creating" if record.state == "creating" else "stopped",
                reason=record.reason if record.state == "creating" else f"copied from {home.root}",
                run=os.urandom(6).hex(),
                conversation_id=None,
                ports=reserve_ports(repository.root, id, len(record.ports)),
            )
    store(paths.home, Home(repository.root, os.urandom(8).hex(), _namespace()))
    told = f"This is a copy of {home.root}: a farm of its own from here on, with {_worktrees(len(trees))}."
    return Place(repository, paths, (told, "The original is left alone; af resume starts a builder here."))


def _worktrees(count: int) -> str:
    return "1 worktree" if count == 1 else f"{count} worktrees"


def _seen_from(repository: Repository, root: Path) -> Repository:
    """The same directories by the path that git recorded."""
    here = root / os.path.relpath(repository.checkout, repository.root) / repository.prefix
    return find_repository(here if here.is_dir() else root)


def _is_same(one: Path, other: Path) -> bool:
    with suppress(OSError):
        return os.path.samefile(one, other)
    return False


def _namespace() -> str:
    """Which mounts this process sees; "" if the system does not say."""
    with suppress(OSError):
        return os.readlink(_NAMESPACE)
    return ""
