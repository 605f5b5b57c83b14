"""The registry itself: all other checks read it."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator

from agent_farm.disk import file_lock
from agent_farm.errors import DamagedFile, ForeignFile, NewerFile
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm


def check_registry(farm: Farm) -> Iterator[Finding]:
    try:
        farm.registry.read()
    except (NewerFile, ForeignFile) as error:
        yield Finding("problem", error.what, error.hint)
    except DamagedFile as error:
        yield Finding("problem", f"{error.what}: {error.why}", heal=lambda: _move_aside(farm))


def _move_aside(farm: Farm) -> str:
    """Each run directory has its builder's record as of its last start, for the checks that follow."""
    file = farm.registry.path
    aside = file.with_name(f"{file.name}.damaged-{time.time_ns()}")
    with file_lock(file.with_suffix(".lock")):
        os.rename(file, aside)
    return f"it is kept as {aside}; its builders get their records back below"
