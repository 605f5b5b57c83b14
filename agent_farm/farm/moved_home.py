"""What to do with a farm that is found under another path than its home's.

It was

- copied: the original is still in its place. The copy becomes a separate farm, whose builders do not run;
- moved: nothing is left in the old place. Worktrees, ports and records follow;
- mounted elsewhere (in a container): the old path cannot be seen from here, and git's paths cannot be right
  on both sides. It is refused, and nothing changes, until somebody says that it was moved.
"""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from msgspec import structs

from agent_farm.builders.events import Exit
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Registry
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.farm.home import FarmToOpen, Home, load_home, namespace_seen
from agent_farm.git.reconnecting import reconnect_others, reconnect_worktrees
from agent_farm.git.repository import Repository
from agent_farm.launch import as_command
from agent_farm.paths import STATE_NAME, WORKTREES_NAME, FarmPaths, RunPaths
from agent_farm.ports import rename_farm, reserve_ports
from agent_farm.processes import processes_of_runs

# Copied, these would make the original's server, token, logins and machines look like the copy's.
_OF_THE_ORIGINAL = ("server.json", "architect.token", "dashboard-logins.json", "fleet.json")


def change_home(repository: Repository, paths: FarmPaths, home: Home, was_moved: bool) -> FarmToOpen:
    if home.root == repository.root:  # it was somewhere else for a while
        return _follow(repository, paths, home)
    original = load_home(FarmPaths(home.root))
    if original is not None and original.farm == home.farm and original.root == home.root and not was_moved:
        return _leave_original(repository, paths, home)
    if home.namespace != namespace_seen() and not was_moved:
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


def _follow(repository: Repository, paths: FarmPaths, home: Home) -> FarmToOpen:
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
    store(now.home, Home(repository.root, home.farm, namespace_seen(), former))
    told = [f"The farm was moved from {next(iter(places), home.root)}; {_worktrees(len(trees))} followed."]
    return FarmToOpen(repository, now, (*told, *_notes(now, running)))


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


def _leave_original(repository: Repository, paths: FarmPaths, home: Home) -> FarmToOpen:
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
            copied = record if record.state == "creating" else record.at_rest(f"copied from {home.root}")
            records[id] = structs.replace(
                copied,
                run=os.urandom(6).hex(),
                conversation_id=None,
                ports=reserve_ports(repository.root, id, len(record.ports)),
            )
    store(paths.home, Home(repository.root, os.urandom(8).hex(), namespace_seen()))
    told = f"This is a copy of {home.root}: a farm of its own from here on, with {_worktrees(len(trees))}."
    return FarmToOpen(
        repository, paths, (told, "The original is left alone; af resume starts a builder here.")
    )


def _worktrees(count: int) -> str:
    return "1 worktree" if count == 1 else f"{count} worktrees"
