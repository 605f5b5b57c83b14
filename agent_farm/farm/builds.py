"""Limits builds, setups and checks as `[limits]` says; without such settings nothing changes."""

from __future__ import annotations

import json
import os
import re
import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.governor import build_shim
from agent_farm.governor.slots import Limits, NoSlots, make_places, slot, waiting_runs
from agent_farm.launch import as_command
from agent_farm.paths import user_state_directory
from agent_farm.settings_keys import SettingsError

_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")
_HERE = Path(build_shim.__file__)


def build_limits(farm: Farm) -> Limits | None:
    slots = farm.settings.number("limits.builds")
    if not slots:
        return None
    return Limits(user_state_directory() / "builds", slots, farm.settings.number("limits.build_memory"))


def stand_before_builds(farm: Farm, record: BuilderRecord) -> None:
    """Write the directory with which a builder's PATH begins if builds are limited."""
    limits = build_limits(farm)
    if limits is None:
        return
    _make_places(limits)
    place = farm.run(record.id).directory
    commands = farm.settings.items("limits.build_commands")
    document = {
        "run": record.run,
        "directory": str(limits.directory),
        "slots": limits.slots,
        "memory": limits.memory,
        "commands": commands,
        "jobs": farm.settings.number("limits.build_jobs"),
    }
    make_directory(place / build_shim.BIN)
    replace_file(place / build_shim.FILE, json.dumps(document, indent=1) + "\n")
    for program in sorted({_program_of(command) for command in commands}):
        script = f'#!/bin/sh\nexec {as_command(*_argv(place), program)} "$@"\n'
        replace_file(place / build_shim.BIN / program, script, mode=0o700)


def path_before_builds(farm: Farm, record: BuilderRecord, env: Mapping[str, str]) -> dict[str, str]:
    """The changes to a builder's environment."""
    if build_limits(farm) is None:
        return {}
    place = farm.run(record.id).directory / build_shim.BIN
    if os.pathsep in str(place):  # it would be two entries, one of them relative to wherever a command runs
        return {}
    return {"PATH": os.pathsep.join((str(place), env.get("PATH", os.defpath)))}


def before_setup(farm: Farm, record: BuilderRecord) -> list[str]:
    """The words before a setup command, through which it is started."""
    return [] if build_limits(farm) is None else [*_argv(farm.run(record.id).directory), "--"]


@contextmanager
def build_slot(farm: Farm, *, waits: Callable[[], None]) -> Iterator[dict[str, str]]:
    """Hold a slot for a check run by this process; yields variables that tell its builds about the slot."""
    limits = build_limits(farm)
    with ExitStack() as stack:
        if limits is not None and not os.environ.get(build_shim.HELD):
            with suppress(NoSlots, AgentFarmError):  # a sandbox or a full disk is no reason not to check
                _make_places(limits)
                stack.enter_context(slot(limits, "", waits=waits))
        yield {} if limits is None else {build_shim.HELD: "1"}


def _make_places(limits: Limits) -> None:
    make_directory(limits.directory)
    try:
        make_places(limits)
    except (NoSlots, OSError) as error:
        raise AgentFarmError(
            "The slots of limits.builds cannot be used",
            why=str(error),
            hint=as_command("ls", "-l", limits.directory),
        ) from error


def queued_for_build(farm: Farm) -> frozenset[str]:
    """The runs of builders that have a build waiting."""
    limits = build_limits(farm)
    return frozenset() if limits is None else waiting_runs(limits.directory)


def _argv(place: Path) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-X", "utf8", str(_HERE), str(place))


def _program_of(command: str) -> str:
    program = next(iter(command.split()), "")
    if not _PROGRAM.fullmatch(program):
        raise SettingsError(
            f"limits.build_commands: {command!r} does not begin with the name of a program",
            hint="af config",
        )
    return program
