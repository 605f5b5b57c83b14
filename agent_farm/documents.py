"""Values in files of ours: a value's fields as JSON, with the version of the format."""

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
from agent_farm.typed import make_known

T = TypeVar("T")


def store(file: Path, value: object, *, version: int = 1, lasting: bool = True) -> bytes:
    """Write a Struct or a dataclass, whole or not at all, and return the file's new content. Names with
    bytes that are not UTF-8 survive."""
    try:
        fields = msgspec.json.encode(value, enc_hook=os.fspath)
    except UnicodeEncodeError:  # a name with such bytes, which Python's own JSON can encode
        plain = msgspec.to_builtins(value, enc_hook=os.fspath)
        fields = json.dumps(plain).encode()
    content = _begin(version) + fields.removeprefix(b"{") + b"\n"
    replace_file(file, content, lasting=lasting)
    return content


def load(file: Path, kind: type[T], *, version: int = 1, about: str | None = None, secret: bool = False) -> T:
    """The value in `file`. NewerFile or DamagedFile, naming the file, if it cannot be read as `kind`; `about`
    then says what is lost.

    FileNotFoundError where there is none.
    """
    return decode(file, read_own(file, secret=secret), kind, version=version, about=about)


def decode(file: Path, content: bytes, kind: type[T], *, version: int = 1, about: str | None = None) -> T:
    """Like `load`, for content that has already been read."""
    make_known(kind)
    is_struct = isinstance(kind, type) and issubclass(kind, msgspec.Struct)  # Structs ignore `version`
    if is_struct and content.startswith(_begin(version)):
        with suppress(ValueError, TypeError, RecursionError):  # the code below says what is wrong
            return msgspec.json.decode(content, type=kind, dec_hook=_made)
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


def _begin(version: int) -> bytes:
    return b'{"version": %d,' % version


def damaged(file: Path, why: str) -> DamagedFile:
    return DamagedFile(f"{file} is damaged", why=why, hint=as_command("mv", file, f"{file}.damaged"))


def _made(kind: type, value: object) -> object:
    """Decode a path, which JSON does not know; only absolute ones are accepted."""
    if kind is not Path or not isinstance(value, str) or not value.startswith("/") or "\0" in value:
        raise ValueError(f"{value!r:.60} is not an absolute path")
    return Path(value)
