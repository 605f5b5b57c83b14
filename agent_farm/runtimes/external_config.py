"""agent_runtime.json: the executables that a repository declares as runtimes.

    {"runtimes": {"NAME": {"adapter": "PATH relative to the root", "timeout_minutes": 30, "cleanup": true}}}

An entry with the name of an executable that af ships may leave out `adapter`. `timeout_minutes` (default 30)
limits a session, `cleanup` (default true) removes its temporary files. Keys of other programs that read this
file are ignored; one that looks like a misspelt key of ours makes its runtime invalid. An entry with `acp`
declares an agent that speaks the Agent Client Protocol: see acp_config.py.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import UNSET, Meta, UnsetType

from agent_farm.errors import AgentFarmError, nearest
from agent_farm.inside import NotReadable, read_plain
from agent_farm.runtimes import ADAPTERS
from agent_farm.runtimes.acp_config import AcpRuntime, acp_runtime
from agent_farm.runtimes.executables.shipped import EXECUTABLES, executable_command, executable_path

FILE_NAME = "agent_runtime.json"
DEFAULT_MINUTES = 30.0
_NAME = re.compile(r"[a-z0-9][a-z0-9_-]{0,39}")
_YEAR = 366 * 24 * 60.0


class RuntimeFileError(AgentFarmError):
    code = "runtime-file"


class _File(msgspec.Struct, frozen=True):
    runtimes: dict[str, Any]


class _Entry(msgspec.Struct, frozen=True):
    adapter: Annotated[str, Meta(min_length=1)] | UnsetType = UNSET
    timeout_minutes: Annotated[float, Meta(gt=0, le=_YEAR)] = DEFAULT_MINUTES
    cleanup: bool = True


class ExternalRuntime(msgspec.Struct, frozen=True):
    """`shipped`: the adapter is af's own executable with that name, not a file of the repository."""

    name: str
    adapter: Path
    timeout_minutes: float = DEFAULT_MINUTES
    cleanup: bool = True
    shipped: bool = False

    @property
    def command(self) -> tuple[str, ...]:
        return executable_command(self.name) if self.shipped else (str(self.adapter),)


def load_external_runtime(root: Path, name: str) -> ExternalRuntime | AcpRuntime:
    """One of the declared runtimes; errors in others do not matter."""
    runtime = declared_runtimes(root)[name]
    if isinstance(runtime, RuntimeFileError):
        raise runtime
    return runtime


def declared_runtimes(root: Path) -> dict[str, ExternalRuntime | AcpRuntime | RuntimeFileError]:
    """Each declared runtime, or what is wrong with it; RuntimeFileError if the whole file is wrong."""
    path = root / FILE_NAME
    try:
        file = msgspec.convert(json.loads(read_plain(path)), _File)
    except FileNotFoundError:
        return {}
    except NotReadable as error:
        raise _wrong(path, error.why or error.what) from error
    except msgspec.ValidationError as error:
        raise _wrong(path, f'it has to be {{"runtimes": {{…}}}}: {error}') from error
    except (ValueError, RecursionError) as error:
        raise _wrong(path, f"it is not JSON: {error}") from error
    return {name: _runtime_or_problem(path, name, given) for name, given in file.runtimes.items()}


def runtime_file_problem(root: Path) -> RuntimeFileError | None:
    """What is wrong with the whole file, in which case it declares nothing."""
    try:
        declared_runtimes(root)
    except RuntimeFileError as error:
        return error
    return None


def _runtime_or_problem(path: Path, name: str, given: Any) -> ExternalRuntime | AcpRuntime | RuntimeFileError:
    try:
        if not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is not a valid name: use lower-case letters, digits, - and _, at most 40"
            )
        if name in ADAPTERS:
            raise ValueError(f"{name} is the name of a runtime that af ships")
        if isinstance(given, dict) and "acp" in given:
            _refuse_misspelt_keys(given, AcpRuntime.__struct_fields__[:-1])
            return acp_runtime(path.parent.resolve(), name, given)
        entry = msgspec.convert(given, _Entry)
        _refuse_misspelt_keys(given, _Entry.__struct_fields__)
        shipped = name in EXECUTABLES and entry.adapter is UNSET
        adapter = executable_path(name) if shipped else _adapter_path(path.parent.resolve(), entry.adapter)
    except ValueError as error:  # includes msgspec's errors
        return _wrong(path, str(error).replace("`$", f"`runtimes.{name}") if name else str(error))
    return ExternalRuntime(name, adapter, entry.timeout_minutes, entry.cleanup, shipped)


def _refuse_misspelt_keys(given: dict[str, Any], ours: tuple[str, ...]) -> None:
    for key in given:
        if key not in ours and (close := nearest(key, ours)):
            raise ValueError(f"unknown key {key!r} - at `$`; did you mean {close}?")


def _adapter_path(root: Path, given: str | UnsetType) -> Path:
    """Must be inside the repository, so that it was reviewed with it."""
    if given is UNSET:
        raise ValueError("Object missing required field `adapter`, a path relative to the root - at `$`")
    adapter = root / given
    if Path(given).is_absolute() or not adapter.resolve().is_relative_to(root):
        raise ValueError(f"{given!r} leads out of the repository - at `$.adapter`")
    return adapter


def _wrong(path: Path, why: str) -> RuntimeFileError:
    return RuntimeFileError(f"{path} is not valid", why=why, hint=f"$EDITOR {path.name}")
