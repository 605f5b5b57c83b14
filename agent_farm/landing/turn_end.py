"""Checks builders whose turn has ended, in the background: one check at a time per farm.

`python -m agent_farm.landing.turn_end ROOT ID` is started by a builder's pane. It leaves a note that the
builder needs a check; whoever holds the lock works through all notes, oldest first.
"""

from __future__ import annotations

import stat
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import AgentFarmError, LockTaken, in_one_line
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.landing.proving import prove
from agent_farm.paths import is_builder_id

_LOCK = "turn-ends.lock"


def main() -> int:
    root, id = sys.argv[1:]
    try:
        farm = open_farm(Path(root))
        if farm.settings.text("check.auto") == "idle" and is_builder_id(id):
            leave_word(farm, id)
            check_all(farm)
    except AgentFarmError as error:
        sys.stderr.write(f"{in_one_line(error)}\n")
        return error.exit_code
    return 0


def leave_word(farm: Farm, id: str) -> None:
    make_directory(_words(farm))
    (_words(farm) / id).touch(mode=0o600)


def check_all(farm: Farm) -> None:
    """Until no note is left. Returns at once if another process is at it: that looks again at its end."""
    while any(_waiting(farm)):
        try:
            with file_lock(farm.paths.locks / _LOCK, wait=0):
                while word := next(_waiting(farm), None):
                    word.unlink(missing_ok=True)  # a turn that ends from here on leaves another note
                    _check(farm, word.name)
        except LockTaken:
            return


def _check(farm: Farm, id: str) -> None:
    record = farm.registry.read().get(id)
    if record is None or not record.is_made:
        return
    try:
        prove(farm, record)
    except (AgentFarmError, OSError) as error:
        sys.stderr.write(f"{id}: {in_one_line(error)}\n")


def _waiting(farm: Farm) -> Iterator[Path]:
    found = []
    for word in _words(farm).glob("*"):
        with suppress(OSError):
            if stat.S_ISREG((facts := word.lstat()).st_mode):  # anything else there could not be removed
                found.append((facts.st_mtime, word))
    return (word for _, word in sorted(found))


def _words(farm: Farm) -> Path:
    return farm.paths.checks / "waiting"


if __name__ == "__main__":
    sys.exit(main())
