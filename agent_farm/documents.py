"""A value in a file of ours: its fields as JSON, and the version of their form."""

from __future__ import annotations

import json
import os
from contextlib import suppress
from pathlib import Path
from typing import Any, TypeVar

import msgspec

from agent_farm.disk import replace_file
from agent_farm.errors import DamagedFile, NewerFile
from agent_farm.launch import as_command
from agent_farm.own_files import read_own

T = TypeVar("T")


def store(file: Path, value: object, *, version: int = 1) -> None:
    """A Struct or a dataclass, whole or not at all. In ASCII, so that names that are not UTF-8 survive."""
    fields = msgspec.to_builtins(value, enc_hook=os.fspath)
    replace_file(file, json.dumps({"version": version, **fields}) + "\n")


def load(file: Path, kind: type[T], *, version: int = 1, about: str | None = None, secret: bool = False) -> T:
    """NewerFile or DamagedFile, by name, for what is not whole; `about` says what is lost with it.

    FileNotFoundError where there is none.
    """
    content = read_own(file, secret=secret)
    try:
        document: dict[str, Any] = json.loads(content)
        found = document.pop("version")
        if type(found) is int and found > version:
            raise NewerFile.of(file, found, version)
        if found != version:
            raise ValueError(f"Its version is {found!r:.20}.")
        return msgspec.convert(document, kind, dec_hook=_made)
    except (ValueError, TypeError, KeyError, AttributeError, RecursionError) as error:
        raise damaged(file, about or str(error)) from error


def load_if_whole(file: Path, kind: type[T], *, version: int = 1, secret: bool = False) -> T | None:
    """For data that can be obtained again: None if the file is missing or unreadable."""
    with suppress(OSError, DamagedFile):
        return load(file, kind, version=version, secret=secret)
    return None


def damaged(file: Path, why: str) -> DamagedFile:
    return DamagedFile(f"{file} is damaged", why=why, hint=as_command("mv", file, f"{file}.damaged"))


def _made(kind: type, value: object) -> object:
    """A path, which JSON does not know: a whole one, since it says where to look."""
    if kind is not Path or not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError(f"{value!r:.60} is not an absolute path")
    return Path(value)
