"""launch.json: what the farm decided for one start, and what the pane may know of it."""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal, NamedTuple

from agent_farm.pane.journal import write_json
from agent_farm.pane.notices import Notice

VERSION = 1
How = Literal["copy", "link", "carry"]
NOTICES = ("notify", "tell", "check")  # what is started when a state is entered


class NotLaunchable(Exception):
    """The message says why nothing can be started from this run directory."""


class Copy(NamedTuple):
    """`link`: to the source, which builders share. `carry`: the target becomes as the source is."""

    source: Path
    target: Path
    how: How = "copy"


class Plan(NamedTuple):
    directory: Path
    builder: str
    run: str
    runtime: str
    worktree: Path
    cwd: Path
    argv: tuple[str, ...]
    env: dict[str, str] | None
    scratch: Path | None
    copies: tuple[Copy, ...]
    setup: str | None
    before_setup: tuple[str, ...]
    shell: tuple[str, ...]
    notices: Mapping[str, Notice]
    at_end: tuple[str, ...]
    waiting: Path | None
    start_next: tuple[str, ...]


def load_plan(directory: Path) -> Plan:
    raw = _load(directory / "launch.json")
    try:
        following = raw.get("next")
        return Plan(
            directory=directory,
            builder=raw["builder"],
            run=raw["run"],
            runtime=raw["runtime"],
            worktree=Path(raw["worktree"]),
            cwd=Path(raw["cwd"]),
            argv=tuple(raw["argv"]),
            env=raw["env"],
            scratch=Path(raw["scratch"]) if raw.get("scratch") else None,
            copies=tuple(
                Copy(Path(copy["from"]), Path(copy["to"]), copy.get("how", "copy"))
                for copy in raw.get("copies") or ()
            ),
            setup=raw.get("setup"),
            before_setup=tuple(raw.get("before_setup") or ()),
            shell=tuple(raw.get("shell") or ("/bin/sh", "-i")),
            notices={name: one for name in NOTICES if (one := Notice.load(raw.get(name)))},
            at_end=tuple(raw.get("at_end") or ()),
            waiting=Path(following["where"]) if following else None,
            start_next=tuple(following["argv"]) if following else (),
        )
    except (KeyError, TypeError) as error:
        raise NotLaunchable(f"{directory / 'launch.json'} lacks {error}") from error


def forget_environment(directory: Path) -> None:
    """The values must not stay on disk; everything else stays for the hooks and for `af logs`."""
    path = directory / "launch.json"
    raw = _load(path)
    raw["env"] = None
    try:
        write_json(str(directory), "launch.json", raw)
    except OSError:  # a full disk still takes what is shorter than before
        with open(path, "r+") as file:
            json.dump(raw, file)
            file.truncate()


def _load(path: Path) -> dict[str, Any]:
    try:
        raw = json.loads(path.read_bytes())
    except (OSError, ValueError) as error:
        raise NotLaunchable(f"{path} cannot be read: {error}") from error
    if not isinstance(raw, dict) or raw.get("version") != VERSION:
        raise NotLaunchable(f"{path} was written by another version of agent-farm")
    return raw
