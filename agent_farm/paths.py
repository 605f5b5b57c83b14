"""Where everything of a farm, and of its user, lives."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

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


@dataclass(frozen=True, slots=True)
class FarmPaths:
    """The files of the farm whose main checkout is `root`; `former` are its names from before it moved."""

    root: Path
    former: tuple[str, ...] = ()

    @property
    def settings(self) -> Path:
        return self.root / SETTINGS_NAME

    @property
    def state(self) -> Path:
        return self.root / STATE_NAME

    @property
    def registry(self) -> Path:
        return self.state / "registry.json"

    @property
    def locks(self) -> Path:
        return self.state / "locks"

    @property
    def worktree_lock(self) -> Path:
        """Held around `git worktree add`, which loses races on the repository's own files."""
        return self.locks / "worktrees.lock"

    def merge_lock(self, worktree: str | None = None) -> Path:
        """Held while a branch is landed on the main checkout, or on a linked worktree of that name."""
        return self.locks / (f"merge-{worktree}.lock" if worktree else "merge.lock")

    @property
    def landing(self) -> Path:
        """The landing queue: who waits, what has landed, what came back."""
        return self.state / "landing.json"

    @property
    def landing_record(self) -> Path:
        """How often what builders made was red, by which the queue guesses."""
        return self.state / "landing-record.json"

    @property
    def comparisons(self) -> Path:
        """Who was compared with whom."""
        return self.state / "comparisons.json"

    @property
    def landing_lock(self) -> Path:
        """Held by whoever works the landing queue off."""
        return self.locks / "landing.lock"

    def trial(self, name: str) -> Path:
        """A throw-away worktree of a merge or of checks, which holds the lock of that name."""
        return self.state / "trials" / name

    @property
    def checks(self) -> Path:
        """What came of checks, and their logs."""
        return self.state / "checks"

    def builder_lock(self, builder_id: str) -> Path:
        """Held while a builder is made, changed or removed; whoever holds it is alive."""
        return self.locks / f"builder-{_checked(builder_id)}.lock"

    def review_lock(self, builder_id: str) -> Path:
        """Held while what is kept of a review is changed, and while comments are sent."""
        return self.locks / f"review-{_checked(builder_id)}.lock"

    def delivery_lock(self, builder_id: str) -> Path:
        return self.locks / f"delivery-{_checked(builder_id)}.lock"

    @property
    def runs(self) -> Path:
        return self.state / "runs"

    def run(self, builder_id: str) -> Path:
        return self.runs / _checked(builder_id)

    @property
    def trash(self) -> Path:
        return self.state / "trash"

    def removed(self, builder_id: str, epoch: int) -> Path:
        """Where a removed builder is kept."""
        return self.trash / f"{_checked(builder_id)}-{int(epoch)}"

    @property
    def worktrees(self) -> Path:
        return self.root / WORKTREES_NAME

    def worktree(self, builder_id: str) -> Path:
        return self.worktrees / _checked(builder_id)

    @property
    def farm_name(self) -> str:
        """Safe in a tmux target and distinct for two checkouts of the same name."""
        slug = re.sub(r"[^a-z0-9]+", "-", self.root.name.lower()).strip("-")[:24].rstrip("-") or "farm"
        return f"{slug}-{hashlib.sha256(os.fsencode(self.root)).hexdigest()[:4]}"

    def session(self, builder_id: str) -> str:
        return f"af-{self.farm_name}-{builder_id}"

    def sessions(self, builder_id: str) -> tuple[str, ...]:
        """All names that a session of this farm's builder can have; another farm's has none of them."""
        return (self.session(builder_id), *(f"af-{name}-{builder_id}" for name in self.former))

    @property
    def home(self) -> Path:
        """Where this farm is at home, by which a moved one and a copy are told."""
        return self.state / "home.json"


@dataclass(frozen=True, slots=True)
class RunPaths:
    """`af`'s own files for one builder; nothing of them lies in its worktree."""

    directory: Path

    @property
    def launch(self) -> Path:
        return self.directory / "launch.json"

    @property
    def record(self) -> Path:
        """The builder's record as of its last start, from which a lost registry is made again."""
        return self.directory / "record.json"

    @property
    def prompt(self) -> Path:
        return self.directory / "prompt.md"

    @property
    def message(self) -> Path:
        """What a continued conversation was told at its start; the prompt stays what it was."""
        return self.directory / "message.md"

    @property
    def role(self) -> Path:
        return self.directory / "role.md"

    @property
    def events(self) -> Path:
        return self.directory / "events.jsonl"

    @property
    def exit(self) -> Path:
        return self.directory / "exit.json"

    @property
    def usage(self) -> Path:
        """Tokens and cost of the conversation, as far as the runtime says."""
        return self.directory / "usage.json"

    @property
    def spending(self) -> Path:
        """What its runtime said of that after each turn."""
        return self.directory / "usage.jsonl"

    @property
    def answer(self) -> Path:
        return self.directory / "answer.json"

    @property
    def door(self) -> Path:
        return self.directory / DOOR

    @property
    def proof(self) -> Path:
        """What checks and the diff say of its work."""
        return self.directory / "proof.json"

    @property
    def review(self) -> Path:
        """What a person has read of its work, said of it and decided."""
        return self.directory / "review.json"

    @property
    def pull_request(self) -> Path:
        """What is known of its pull request."""
        return self.directory / "pull-request.json"

    @property
    def processes(self) -> Path:
        return self.directory / "processes.json"


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
