"""Where everything of a farm, and of its user, lives."""

from __future__ import annotations

import os
import re
from binascii import crc32
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import Protocol

from agent_farm.errors import DamagedFile

SETTINGS_NAME = "agent-farm.toml"
DOOR = "door"  # of a run: where messages lie that are not typed
STATE_NAME = ".agent-farm"
WORKTREES_NAME = ".builders"
IGNORED_BY_GIT = (f"/{STATE_NAME}/", f"/{WORKTREES_NAME}/")
_BUILDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_builder_id(text: object) -> bool:
    """One name of a file, no path and no option."""
    return isinstance(text, str) and len(text) <= 200 and _BUILDER_ID.fullmatch(text) is not None


def is_below(path: object) -> bool:
    """Whether a path that was read somewhere stays below the directory it is joined to."""
    if not isinstance(path, str) or not path or path.startswith("/") or "\0" in path:
        return False
    return ".." not in path.split("/")


def _checked(builder_id: str) -> str:
    """Ids come from files, too; what is made and deleted under them stays below its directory."""
    if not is_builder_id(builder_id):
        raise DamagedFile(f"{builder_id!r:.80} cannot be the id of a builder", hint="af doctor")
    return builder_id


class _Directory(Protocol):
    @property
    def place(self) -> Path: ...


class _Inside:
    """What lies under a name in the directory of its owner, joined once: a status asks for it of hundreds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, owner: _Directory, kind: object) -> Path:
        path = vars(owner)[self._attribute] = owner.place / self.name
        return path


class FarmPaths:
    """The files of the farm whose main checkout is `root`; `former` are its names from before it moved."""

    def __init__(self, root: Path, former: tuple[str, ...] = (), called: str = "") -> None:
        self.root = root
        self.former = former
        self.called = called

    def once_called(self, *former: str) -> FarmPaths:
        return FarmPaths(self.root, former, self.called)

    @property
    def name(self) -> str:
        """As people call it: its directory, or that of the bare repository whose worktree `root` is."""
        return self.called or self.root.name

    @property
    def state(self) -> Path:
        return self.root / STATE_NAME

    place = state

    registry = _Inside("registry.json")
    # by which a moved farm and a copy are told
    home = _Inside("home.json")
    locks = _Inside("locks")
    # held around `git worktree add`, which loses races on the repository's own files
    worktree_lock = _Inside("locks/worktrees.lock")
    # held by whoever works the landing queue off
    landing_lock = _Inside("locks/landing.lock")
    # the landing queue: who waits, what has landed, what came back
    landing = _Inside("landing.json")
    # how often what builders made was red, by which the queue guesses
    landing_record = _Inside("landing-record.json")
    # which builders were compared
    comparisons = _Inside("comparisons.json")
    # when what deletes by age looked last
    clock = _Inside("clock.json")
    # the machines of the fleet, and the builders on them
    fleet = _Inside("fleet.json")
    # what came of checks, and their logs
    checks = _Inside("checks")
    runs = _Inside("runs")
    trash = _Inside("trash")

    @cached_property
    def worktrees(self) -> Path:
        return self.root / WORKTREES_NAME

    def merge_lock(self, worktree: str | None = None) -> Path:
        """Held while a branch is landed on the main checkout, or on a linked worktree of that name."""
        return self.locks / (f"merge-{worktree}.lock" if worktree else "merge.lock")

    def trial(self, name: str) -> Path:
        """A throw-away worktree of a merge or of checks, which holds the lock of that name."""
        return self.state / "trials" / name

    def builder_lock(self, builder_id: str) -> Path:
        """Held while a builder is made, changed or removed; whoever holds it is alive."""
        return self.locks / f"builder-{_checked(builder_id)}.lock"

    def review_lock(self, builder_id: str) -> Path:
        """Held while what is kept of a review is changed, and while comments are sent."""
        return self.locks / f"review-{_checked(builder_id)}.lock"

    def delivery_lock(self, builder_id: str) -> Path:
        return self.locks / f"delivery-{_checked(builder_id)}.lock"

    def run(self, builder_id: str) -> Path:
        return self.runs / _checked(builder_id)

    def run_paths(self, builder_id: str) -> RunPaths:
        known = self._run_paths.get(builder_id)
        if known is None:
            known = self._run_paths[builder_id] = RunPaths(self.run(builder_id))
        return known

    @cached_property
    def _run_paths(self) -> dict[str, RunPaths]:
        return {}

    def worktree(self, builder_id: str) -> Path:
        return self.worktrees / _checked(builder_id)

    @cached_property
    def farm_name(self) -> str:
        """Safe in a tmux target and distinct for two checkouts of the same name."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.name.lower()).strip("-")[:24].rstrip("-") or "farm"
        return f"{slug}-{crc32(os.fsencode(self.root)) & 0xFFFF:04x}"

    def session(self, builder_id: str) -> str:
        return f"af-{self.farm_name}-{builder_id}"

    def sessions(self, builder_id: str) -> tuple[str, ...]:
        """All names that a session of this farm's builder can have; another farm's has none of them."""
        return (self.session(builder_id), *(f"af-{name}-{builder_id}" for name in self.former))


class RunPaths:
    """`af`'s own files for one builder; none of them is in its worktree."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def place(self) -> Path:
        return self.directory

    launch = _Inside("launch.json")
    # the builder's record as of its last start, from which a lost registry is made again
    record = _Inside("record.json")
    prompt = _Inside("prompt.md")
    # the message that started a continued conversation; the prompt stays as it was
    message = _Inside("message.md")
    role = _Inside("role.md")
    events = _Inside("events.jsonl")
    exit = _Inside("exit.json")
    # tokens and cost of the conversation, if the runtime reports them
    usage = _Inside("usage.json")
    # what its runtime said of that after each turn
    spending = _Inside("usage.jsonl")
    answer = _Inside("answer.json")
    door = _Inside(DOOR)
    # what checks and the diff say of its work
    proof = _Inside("proof.json")
    # what a person has read of its work, said of it and decided
    review = _Inside("review.json")
    # what is known of its pull request
    pull_request = _Inside("pull-request.json")
    processes = _Inside("processes.json")

    def names(self) -> frozenset[str]:
        """Of the files that are there now: one question where a status would open each of several."""
        try:
            return frozenset(os.listdir(self.directory))
        except OSError:
            return frozenset()

    @property
    def of_the_work(self) -> tuple[Path, ...]:
        """What is found out here, wherever the builder is."""
        return self.proof, self.review, self.pull_request


def user_state_directory() -> Path:
    """What is the user's and not one repository's: consent, ports, logs of bugs."""
    return _user_directory("STATE", ".local/state") / "agent-farm"


def user_settings_file() -> Path:
    """Settings that are one person's, in every repository."""
    return _user_directory("CONFIG", ".config") / "agent-farm" / "config.toml"


def names_of_user_directories(environ: Mapping[str, str]) -> dict[str, str]:
    """Under the names that reach a builder's pane, where the caller's are elsewhere than usual."""
    found = {kind: environ.get(f"AF_{kind}_HOME") or environ.get(f"XDG_{kind}_HOME") for kind in _KINDS}
    return {f"AF_{kind}_HOME": value for kind, value in found.items() if value}


def _user_directory(kind: str, usual: str) -> Path:
    for base in (os.environ.get(f"AF_{kind}_HOME"), os.environ.get(f"XDG_{kind}_HOME")):
        if base and os.path.isabs(base):
            return Path(base)
    return Path.home() / usual


_KINDS = ("STATE", "CONFIG")
