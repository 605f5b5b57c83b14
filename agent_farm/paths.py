"""Where every file of a farm, and of its user, is."""

from __future__ import annotations

import os
import re
from binascii import crc32
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from agent_farm.errors import DamagedFile

if TYPE_CHECKING:  # defining a Protocol takes 0.1 ms
    from typing import Protocol

    class _Directory(Protocol):
        @property
        def place(self) -> Path: ...


SETTINGS_NAME = "agent-farm.toml"
DOOR = "door"  # of a run: a directory for messages that are not typed into its terminal
STATE_NAME = ".agent-farm"
WORKTREES_NAME = ".builders"
IGNORED_BY_GIT = (f"/{STATE_NAME}/", f"/{WORKTREES_NAME}/")
_BUILDER_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*")


def is_builder_id(text: object) -> bool:
    """Whether `text` is a single file name: no path and no option."""
    return isinstance(text, str) and len(text) <= 200 and _BUILDER_ID.fullmatch(text) is not None


def is_below(path: object) -> bool:
    """Whether a path read from a file stays below the directory it is joined to."""
    if not isinstance(path, str) or not path or path.startswith("/") or "\0" in path:
        return False
    return ".." not in path.split("/")


def _checked(builder_id: str) -> str:
    """Ids come from files too; what is created and deleted under them has to stay below its directory."""
    if not is_builder_id(builder_id):
        raise DamagedFile(f"{builder_id!r:.80} cannot be the id of a builder", hint="af doctor")
    return builder_id


class _Inside:
    """A path with a fixed name in its owner's directory, joined once: a status needs hundreds."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __set_name__(self, owner: type, attribute: str) -> None:
        self._attribute = attribute

    def __get__(self, owner: _Directory, kind: object) -> Path:
        path = vars(owner)[self._attribute] = owner.place / self.name
        return path


class FarmPaths:
    """The files of the farm with its main checkout at `root`; `former` are its names before it moved."""

    def __init__(self, root: Path, former: tuple[str, ...] = (), called: str = "") -> None:
        self.root = root
        self.former = former
        self.called = called

    def once_called(self, *former: str) -> FarmPaths:
        return FarmPaths(self.root, former, self.called)

    @property
    def name(self) -> str:
        """What people call it: its directory, or that of the bare repository whose worktree `root` is."""
        return self.called or self.root.name

    @property
    def state(self) -> Path:
        return self.root / STATE_NAME

    place = state

    registry = _Inside("registry.json")
    # tells a moved farm from a copy
    home = _Inside("home.json")
    locks = _Inside("locks")
    # held around `git worktree add`, which fails when others change the repository's own files
    worktree_lock = _Inside("locks/worktrees.lock")
    # held by whoever works through the landing queue
    landing_lock = _Inside("locks/landing.lock")
    # the landing queue: what waits, what has landed, what was rejected
    landing = _Inside("landing.json")
    # how often the work of builders failed its checks, from which the queue guesses
    landing_record = _Inside("landing-record.json")
    # which builders have been compared
    comparisons = _Inside("comparisons.json")
    # when something that deletes by age last looked at the clock
    clock = _Inside("clock.json")
    # the machines of the fleet, and the builders on them
    fleet = _Inside("fleet.json")
    # results and logs of checks
    checks = _Inside("checks")
    runs = _Inside("runs")
    trash = _Inside("trash")

    @cached_property
    def worktrees(self) -> Path:
        return self.root / WORKTREES_NAME

    def merge_lock(self, worktree: str | None = None) -> Path:
        """Held while a branch lands on the main checkout, or on the linked worktree of that name."""
        return self.locks / (f"merge-{worktree}.lock" if worktree else "merge.lock")

    def trial(self, name: str) -> Path:
        """A throw-away worktree for a merge or for checks; whoever uses it holds the lock of that name."""
        return self.state / "trials" / name

    def builder_lock(self, builder_id: str) -> Path:
        """Held while a builder is created, changed or removed; its holder is a live process."""
        return self.locks / f"builder-{_checked(builder_id)}.lock"

    def review_lock(self, builder_id: str) -> Path:
        """Held while the records of a review change, and while comments are sent."""
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
        """All names that a session of this builder can have; sessions of other farms have none of them."""
        return (self.session(builder_id), *(f"af-{name}-{builder_id}" for name in self.former))


class RunPaths:
    """`af`'s own files about one builder; none of them is in its worktree."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory

    @property
    def place(self) -> Path:
        return self.directory

    launch = _Inside("launch.json")
    # the builder's record as of its last start, from which a lost registry is rebuilt
    record = _Inside("record.json")
    prompt = _Inside("prompt.md")
    # the message that started a continued conversation; the prompt stays as it was
    message = _Inside("message.md")
    role = _Inside("role.md")
    events = _Inside("events.jsonl")
    exit = _Inside("exit.json")
    # tokens and cost of the conversation, if the runtime reports them
    usage = _Inside("usage.json")
    # what its runtime reported of that after each turn
    spending = _Inside("usage.jsonl")
    answer = _Inside("answer.json")
    door = _Inside(DOOR)
    # the proof: what checks and the diff say about its work
    proof = _Inside("proof.json")
    # what a person has read of its work, commented on and decided
    review = _Inside("review.json")
    # its pull request as of the last look
    pull_request = _Inside("pull-request.json")
    processes = _Inside("processes.json")

    def names(self) -> frozenset[str]:
        """The names of the files that exist now: one system call where a status would open each file."""
        try:
            return frozenset(os.listdir(self.directory))
        except OSError:
            return frozenset()

    @property
    def of_the_work(self) -> tuple[Path, ...]:
        """Facts about the work that are found out on this machine, wherever the builder runs."""
        return self.proof, self.review, self.pull_request


def user_state_directory() -> Path:
    """What belongs to the user rather than to one repository: consent, ports, logs of bugs."""
    return _user_directory("STATE", ".local/state") / "agent-farm"


def user_settings_file() -> Path:
    """The user's own settings, for every repository."""
    return _user_directory("CONFIG", ".config") / "agent-farm" / "config.toml"


def names_of_user_directories(environ: Mapping[str, str]) -> dict[str, str]:
    """Variables that tell a builder's pane where these directories are, unless in the usual place."""
    found = {kind: environ.get(f"AF_{kind}_HOME") or environ.get(f"XDG_{kind}_HOME") for kind in _KINDS}
    return {f"AF_{kind}_HOME": value for kind, value in found.items() if value}


def _user_directory(kind: str, usual: str) -> Path:
    for base in (os.environ.get(f"AF_{kind}_HOME"), os.environ.get(f"XDG_{kind}_HOME")):
        if base and os.path.isabs(base):
            return Path(base)
    return Path.home() / usual


_KINDS = ("STATE", "CONFIG")
