"""Finds out which version of a CLI is installed from its files, without starting it."""

from __future__ import annotations

import json
import os
import re
from itertools import islice
from pathlib import Path

_NUMBER = re.compile(r"\d+\.\d+\.\d+")
_LARGEST = 1 << 20


def installed_version(program: str, package: str) -> str | None:
    """From the package.json of npm's `package` above the program, or the number in the program's own path.

    None if neither says so; `--version` may.
    """
    place = Path(os.path.realpath(program))
    for directory in islice(place.parents, 4):
        found = _of_package(directory / "package.json", package)
        if found:
            return found
    number = _NUMBER.fullmatch(place.name)
    return number[0] if number else None


def is_older(version: str, oldest: str) -> bool:
    """False for versions in an unknown form."""
    one, other = _NUMBER.search(version), _NUMBER.search(oldest)
    return bool(one and other and _parts(one[0]) < _parts(other[0]))


def major_of(version: str) -> int:
    return int(version.partition(".")[0])


def _of_package(file: Path, package: str) -> str | None:
    try:
        if not file.is_file() or file.stat().st_size > _LARGEST:
            return None
        document = json.loads(file.read_bytes())
        return str(document["version"]) if document["name"] == package else None
    except (OSError, ValueError, KeyError, TypeError, RecursionError):
        return None


def _parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))
