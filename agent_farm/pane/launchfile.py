"""launch.json: what the farm decided for one start, and what the pane may know about it."""

from __future__ import annotations

import os

from agent_farm.lean import dumps, loads
from agent_farm.pane.journal import write_json
from agent_farm.pane.notices import Notice

TYPE_CHECKING = False
if TYPE_CHECKING:
    from pathlib import Path
    from typing import Any, Literal

    How = Literal["copy", "link", "carry"]

VERSION = 1
NOTICES = ("notify", "tell", "check")  # commands that are started when a state is entered


class NotLaunchable(Exception):
    """The message says why nothing can be started from this run directory."""


class Copy:
    """`how`: "link" (to the source, which builders share), "carry" (make equal to the source), "copy"."""

    def __init__(self, source: Path, target: Path, how: How = "copy") -> None:
        self.source = source
        self.target = target
        self.how = how


class Plan:
    """The content of launch.json; KeyError or TypeError if it is not valid."""

    def __init__(self, directory: str, raw: dict[str, Any]) -> None:
        following = raw.get("next")
        self.directory = directory
        self.builder: str = raw["builder"]
        self.run: str = raw["run"]
        self.runtime: str = raw["runtime"]
        self.worktree: str = raw["worktree"]
        self.cwd: str = raw["cwd"]
        self.argv = tuple[str, ...](raw["argv"])
        self.env: dict[str, str] | None = raw["env"]
        self.scratch: str | None = raw.get("scratch") or None
        self.setup: str | None = raw.get("setup")
        self.before_setup = tuple[str, ...](raw.get("before_setup") or ())
        self.shell = tuple[str, ...](raw.get("shell") or ("/bin/sh", "-i"))
        self.notices = {name: one for name in NOTICES if (one := Notice.load(raw.get(name)))}
        self.at_end = tuple[str, ...](raw.get("at_end") or ())
        self.waiting: str | None = following["where"] if following else None
        self.start_next = tuple[str, ...](following["argv"]) if following else ()
        self._copies: list[dict[str, Any]] = raw.get("copies") or []

    @property
    def copies(self) -> list[Copy]:
        if not self._copies:
            return []
        from pathlib import Path  # costs as much as the rest of a launcher, and most builders copy nothing

        return [Copy(Path(one["from"]), Path(one["to"]), one.get("how", "copy")) for one in self._copies]


def load_plan(directory: str) -> Plan:
    raw = _load(os.path.join(directory, "launch.json"))
    try:
        return Plan(directory, raw)
    except (KeyError, TypeError) as error:
        raise NotLaunchable(f"{directory}/launch.json lacks {error}") from error


def forget_environment(directory: str) -> None:
    """The values must not stay on disk; the rest stays for the hooks and for `af logs`."""
    path = os.path.join(directory, "launch.json")
    raw = _load(path)
    raw["env"] = None
    try:
        write_json(directory, "launch.json", raw)
    except OSError:  # even a full disk takes content that is shorter than before
        with open(path, "r+") as file:
            file.write(dumps(raw))
            file.truncate()


def _load(path: str) -> dict[str, Any]:
    try:
        with open(path, "rb") as file:
            raw = loads(file.read())
    except (OSError, ValueError) as error:
        raise NotLaunchable(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("version") != VERSION:
        raise NotLaunchable(f"{path} was written by another version of agent-farm")
    return raw
