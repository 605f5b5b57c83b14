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
from agent_farm.governor import as_build, build_shim
from agent_farm.governor.slots import Limits, NoSlots, make_places, slot, waiting_runs
from agent_farm.launch import as_command
from agent_farm.paths import user_state_directory
from agent_farm.settings_keys import SettingsError

_PROGRAM = re.compile(r"[A-Za-z0-9_][A-Za-z0-9._+-]*")


def build_limits(farm: Farm) -> Limits | None:
    slots = farm.settings.number("limits.builds")
    if not slots:
        return None
    memory, jobs = (farm.settings.number(f"limits.build_{name}") for name in ("memory", "jobs"))
    return Limits(user_state_directory() / "builds", slots, memory, jobs)


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
        "jobs": limits.jobs,
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
def build_slot(farm: Farm, run: str, *, waits: Callable[[], None]) -> Iterator[tuple[str, ...]]:
    """Hold a slot for a check run by this process; yields the words before its command, for it to be a build.

    `run` identifies the start of the builder whose check it is.
    """
    limits, words = build_limits(farm), tuple[str, ...]()
    with ExitStack() as stack:
        if limits is not None and os.environ.get(as_build.HELD):  # asked for by a build
            words = ("env", f"{as_build.HELD}=1")
        elif limits is not None:
            with suppress(NoSlots, AgentFarmError):  # a sandbox or a full disk is no reason not to check
                _make_places(limits)
                held = stack.enter_context(slot(limits, run, waits=waits))
                group = str(held.group or "")
                words = _python(as_build.__file__, str(held.path), str(held.jobs), group)
        yield words


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
    return _python(build_shim.__file__, str(place))


def _python(file: str, *words: str) -> tuple[str, ...]:
    return (sys.executable, "-I", "-S", "-X", "utf8", file, *words)


def _program_of(command: str) -> str:
    program = next(iter(command.split()), "")
    if not _PROGRAM.fullmatch(program):
        raise SettingsError(
            f"limits.build_commands: {command!r} does not begin with the name of a program",
            hint="af config",
        )
    return program
