"""agent_runtime.json: the executables that a repository declares as runtimes.

    {"runtimes": {"NAME": {"adapter": "PATH relative to the root", "timeout_minutes": 30, "cleanup": true}}}

An entry named after an executable that af ships may go without `adapter`: it is that one. `timeout_minutes`
(default 30) bounds a session, `cleanup` (default true) removes its temporary files. Keys of other programs
that read this file are left to them; one that looks like a misspelt key of ours is refused, with its runtime.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, nearest
from agent_farm.inside import NotReadable, read_plain
from agent_farm.runtimes import ADAPTERS
from agent_farm.runtimes.executables.paths import EXECUTABLES, executable_command, executable_path

FILE_NAME = "agent_runtime.json"
DEFAULT_MINUTES = 30.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_FIELDS = ("adapter", "timeout_minutes", "cleanup")


class RuntimeFileError(AgentFarmError):
    code = "runtime-file"


@dataclass(frozen=True, slots=True)
class ExternalRuntime:
    """`shipped` when the adapter is af's own executable of that name and not a file of the repository."""

    name: str
    adapter: Path
    timeout_minutes: float = DEFAULT_MINUTES
    cleanup: bool = True
    shipped: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        return executable_command(self.name) if self.shipped else (str(self.adapter),)


def load_external_runtime(root: Path, name: str) -> ExternalRuntime:
    """One of those that are declared; what is wrong with another is no matter."""
    runtime = declared_runtimes(root)[name]
    if isinstance(runtime, RuntimeFileError):
        raise runtime
    return runtime


def declared_runtimes(root: Path) -> dict[str, ExternalRuntime | RuntimeFileError]:
    """Each by itself: one that is wrong takes no other along."""
    path = root / FILE_NAME
    try:
        document = json.loads(read_plain(path))
    except FileNotFoundError:
        return {}
    except NotReadable as error:
        raise _wrong(path, error.why or error.what) from error
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is no JSON: {error}") from error
    if not isinstance(document, Mapping) or not isinstance(document.get("runtimes"), Mapping):
        raise _wrong(path, 'it has to be {"runtimes": {…}}')
    return {str(name): _tried(path, str(name), given) for name, given in document["runtimes"].items()}


def runtime_file_problem(root: Path) -> RuntimeFileError | None:
    """What is wrong with the whole file, which then declares nothing."""
    try:
        declared_runtimes(root)
    except RuntimeFileError as error:
        return error
    return None


def _tried(path: Path, name: str, given: Any) -> ExternalRuntime | RuntimeFileError:
    try:
        return _runtime(path, name, given)
    except RuntimeFileError as error:
        return error


def _runtime(path: Path, name: str, given: Any) -> ExternalRuntime:
    if not _NAME.fullmatch(name):
        raise _wrong(path, f"{name!r} is no name: small letters, digits, - and _, at most 40")
    if name in ADAPTERS:
        raise _wrong(path, f"{name} is the name of a runtime that af ships")
    if not isinstance(given, Mapping):
        raise _wrong(path, f"{name} has to be an object")
    for field in given:
        if field not in _FIELDS and (close := nearest(str(field), _FIELDS)):
            raise _wrong(path, f"{name}: unknown key {field!r}; did you mean {close}?")
    minutes = given.get("timeout_minutes", DEFAULT_MINUTES)
    if isinstance(minutes, bool) or not isinstance(minutes, int | float) or not 0 < minutes < math.inf:
        raise _wrong(path, f"{name}: timeout_minutes has to be a number above 0")
    if not isinstance(cleanup := given.get("cleanup", True), bool):
        raise _wrong(path, f"{name}: cleanup has to be true or false")
    shipped = name in EXECUTABLES and "adapter" not in given
    adapter = executable_path(name) if shipped else _adapter_path(path, name, given.get("adapter"))
    return ExternalRuntime(name, adapter, float(minutes), cleanup, shipped)


def _adapter_path(path: Path, name: str, given: object) -> Path:
    """Inside the repository, so that what is declared is what was reviewed."""
    if not isinstance(given, str) or not given:
        raise _wrong(path, f"{name}: adapter has to be a path relative to the repository's root")
    root = path.parent.resolve()
    adapter = root / given
    if Path(given).is_absolute() or not adapter.resolve().is_relative_to(root):
        raise _wrong(path, f"{name}: adapter {given!r} leads out of the repository")
    return adapter


def _wrong(path: Path, why: str) -> RuntimeFileError:
    return RuntimeFileError(f"{path} is not valid", why=why, hint=f"$EDITOR {path.name}")
