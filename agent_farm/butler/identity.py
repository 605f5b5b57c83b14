"""Butler: a resident agent, as its directory and `butler.toml` describe it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from agent_farm.butler.sources import TASK_NAME
from agent_farm.errors import AgentFarmError, NotFound, nearest
from agent_farm.paths import FarmPaths
from agent_farm.settings import load_document, load_settings

FILE_NAME = "butler.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")
VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")

_BUTLER_KEYS = (
    "name",
    "port",
    "runtime",
    "model",
    "max_concurrent_sessions",
    "max_queued_sessions",
    "session_timeout",
    "transport",
    "env",
    "schedule",
)
_SCHEDULE_KEYS = ("name", "cron", "prompt", "timezone")


Transport = Literal["http", "sse"]


class ButlerError(AgentFarmError):
    code = "butler"


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    name: str
    cron: str
    prompt: str
    timezone: str | None = None


@dataclass(frozen=True, slots=True)
class Butler:
    """`directory` is where its sessions run; `roster` is what its includes are relative to."""

    name: str
    directory: Path
    roster: Path
    port: int = 0
    runtime: str | None = None
    model: str | None = None
    max_concurrent_sessions: int = 1
    max_queued_sessions: int = 100
    session_timeout: int = 3600
    transport: Transport = "http"
    required_env: tuple[str, ...] = ()
    optional_env: tuple[str, ...] = ()
    module_credentials: tuple[str, ...] = ()
    memory: bool = False
    schedules: tuple[ScheduleEntry, ...] = ()


def roster_directory(root: Path) -> Path:
    return root / "codev" / "roster"


def farm_butler_name(root: Path) -> str:
    return FarmPaths(root).farm_name


def butler_names(root: Path) -> list[str]:
    """The butlers that `codev/roster/` describes."""
    roster = roster_directory(root)
    return sorted(file.parent.name for file in roster.glob(f"*/{FILE_NAME}"))


def own_butler_name(root: Path) -> str:
    """The farm's own butler: the only one in the roster, else the packaged one."""
    names = butler_names(root)
    return names[0] if len(names) == 1 else farm_butler_name(root)


def load_butler(root: Path, name: str | None = None) -> Butler:
    """The named butler; without a name the farm's own."""
    names = butler_names(root)
    name = name or own_butler_name(root)
    if name in names:
        return _from_file(root, roster_directory(root) / name)
    if name == farm_butler_name(root):
        return _packaged(root, name)
    close = nearest(name, [*names, farm_butler_name(root)])
    raise NotFound(
        f"No butler {name}",
        why=f"Did you mean {close}?" if close else f"Known: {', '.join([*names, farm_butler_name(root)])}",
        hint=f"$EDITOR codev/roster/{name}/{FILE_NAME}",
    )


def require_claude_md(butler: Butler) -> None:
    """A butler without a CLAUDE.md gets the packaged one; one that exists is never touched."""
    from agent_farm.disk import make_directory, replace_file

    file = butler.directory / "CLAUDE.md"
    if not file.exists():
        make_directory(butler.directory)
        replace_file(file, packaged_claude_md(), mode=0o644)


def packaged_claude_md() -> str:
    return (Path(__file__).parent / "CLAUDE.md").read_text()


def _packaged(root: Path, name: str) -> Butler:
    settings = load_settings(root)
    directory = FarmPaths(root).state / "butler"
    roster = roster_directory(root)
    return Butler(
        name=name,
        directory=directory,
        roster=roster if roster.is_dir() else directory,
        port=settings.number("server.port"),
        runtime=settings.text("spawn.runtime"),
        model=settings.text("spawn.model"),
        optional_env=settings.items("env.pass"),
    )


def _from_file(root: Path, directory: Path) -> Butler:
    file = directory / FILE_NAME
    document = load_document(file)
    _known(file, "", document, ("butler", "modules"))
    table = _table(file, "butler", document.get("butler", {}))
    _known(file, "butler.", table, _BUTLER_KEYS)
    env = _table(file, "butler.env", table.get("env", {}))
    _known(file, "butler.env.", env, ("required", "optional"))
    modules = _table(file, "modules", document.get("modules", {}))
    settings = load_settings(root)
    name = _text(file, "butler.name", table.get("name", directory.name), NAME)
    if name != directory.name:
        raise ButlerError(f"{file}: butler.name is {name}", why=f"Its directory is called {directory.name}.")
    return Butler(
        name=name,
        directory=directory,
        roster=directory.parent,
        port=_number(file, "butler.port", table.get("port", settings.number("server.port")), 0),
        runtime=table.get("runtime") or settings.text("spawn.runtime"),
        model=table.get("model") or settings.text("spawn.model"),
        max_concurrent_sessions=_number(
            file, "butler.max_concurrent_sessions", table.get("max_concurrent_sessions", 1), 1
        ),
        max_queued_sessions=_number(
            file, "butler.max_queued_sessions", table.get("max_queued_sessions", 100), 0
        ),
        session_timeout=_number(file, "butler.session_timeout", table.get("session_timeout", 3600), 1),
        transport=_transport(file, table.get("transport", "http")),
        required_env=_variables(file, "butler.env.required", env.get("required", [])),
        optional_env=(
            *_variables(file, "butler.env.optional", env.get("optional", [])),
            *settings.items("env.pass"),
        ),
        module_credentials=_module_credentials(file, modules),
        memory="memory" in modules and modules["memory"].get("enabled", True) is not False,
        schedules=_schedules(file, table.get("schedule", [])),
    )


def _schedules(file: Path, entries: Any) -> tuple[ScheduleEntry, ...]:
    if not isinstance(entries, list):
        raise ButlerError(f"{file}: butler.schedule must be tables", why="Write [[butler.schedule]].")
    schedules = []
    for entry in entries:
        table = _table(file, "butler.schedule", entry)
        _known(file, "butler.schedule.", table, _SCHEDULE_KEYS)
        schedules.append(
            ScheduleEntry(
                name=_text(file, "butler.schedule.name", table.get("name"), TASK_NAME),
                cron=_text(file, "butler.schedule.cron", table.get("cron")),
                prompt=_text(file, "butler.schedule.prompt", table.get("prompt")),
                timezone=table.get("timezone"),
            )
        )
    names = [schedule.name for schedule in schedules]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise ButlerError(f"{file}: two schedules are called {doubled[0]}")
    return tuple(schedules)


def _module_credentials(file: Path, modules: Mapping[str, Any]) -> tuple[str, ...]:
    names: list[str] = []
    for module, content in modules.items():
        table = _table(file, f"modules.{module}", content)
        names += _variables(file, f"modules.{module}.credentials", table.get("credentials", []))
    return tuple(dict.fromkeys(names))


def _known(file: Path, prefix: str, table: Mapping[str, Any], names: tuple[str, ...]) -> None:
    for key in table:
        if key not in names:
            close = nearest(key, names)
            raise ButlerError(
                f"{file}: unknown key {prefix}{key}",
                why=f"Did you mean {prefix}{close}?" if close else f"Known keys: {', '.join(names)}",
            )


def _table(file: Path, label: str, value: Any) -> Mapping[str, Any]:
    if not isinstance(value, Mapping):
        raise ButlerError(f"{file}: {label} must be a table", why=f"It is {value!r}.")
    return value


def _text(file: Path, label: str, value: Any, pattern: re.Pattern[str] | None = None) -> str:
    if not isinstance(value, str) or not value.strip():
        raise ButlerError(f"{file}: {label} must be a string", why=f"It is {value!r}.")
    if pattern and not pattern.fullmatch(value):
        raise ButlerError(f"{file}: {label} is {value!r}", why="Letters, digits, - and _ are allowed.")
    return value


def _number(file: Path, label: str, value: Any, least: int) -> int:
    if not isinstance(value, int) or isinstance(value, bool) or value < least:
        raise ButlerError(
            f"{file}: {label} must be a whole number, at least {least}", why=f"It is {value!r}."
        )
    return value


def _transport(file: Path, value: Any) -> Transport:
    if value == "http":
        return "http"
    if value == "sse":
        return "sse"
    raise ButlerError(f"{file}: butler.transport must be http or sse", why=f"It is {value!r}.")


def _variables(file: Path, label: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(
        isinstance(item, str) and VARIABLE.fullmatch(item) for item in value
    ):
        raise ButlerError(
            f"{file}: {label} must list names of environment variables", why=f"It is {value!r}."
        )
    return tuple(value)
