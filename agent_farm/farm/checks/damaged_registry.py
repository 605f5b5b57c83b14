"""Checks the registry itself, which all other checks read."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from functools import partial

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, replace_file
from agent_farm.errors import DamagedFile, ForeignFile, NewerFile
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.checks.lost_parts import last_record
from agent_farm.farm.farm import Farm
from agent_farm.launch import as_command
from agent_farm.paths import is_builder_id


def check_registry(farm: Farm) -> Iterator[Finding]:
    try:
        records = farm.registry.read()
    except (NewerFile, ForeignFile) as error:
        yield Finding("problem", error.what, error.hint)
    except DamagedFile as error:
        yield Finding("problem", f"{error.what}: {error.why}", heal=lambda: _move_aside(farm))
    else:
        for id, damage in records.unreadable.items():
            record = last_record(farm, id) if is_builder_id(id) else None
            edit = as_command("nano", farm.registry.path)
            heal = partial(_put_back, farm, record) if record else None
            yield Finding("problem", damage.sentence, None if record else edit, heal)


def _put_back(farm: Farm, record: BuilderRecord) -> str:
    """Its record as of its last start; the old registry is kept beside it."""
    file = farm.registry.path
    with farm.registry.edit() as records:
        if record.id not in records.unreadable:
            return f"{record.id} has been repaired in the meantime"
        aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
        replace_file(aside, file.read_bytes())
        records[record.id] = record
    return f"{record.id} has the record of its last start again; the old registry is {aside}"


def _move_aside(farm: Farm) -> str:
    """Each run directory has its builder's record as of its last start, for the checks that follow."""
    file = farm.registry.path
    aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
    with file_lock(file.with_suffix(".lock")):
        os.rename(file, aside)
    return f"it is kept as {aside}; its builders get their records back below"
