"""Butler: a resident agent, as its directory and `butler.toml` describe it."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path, PurePosixPath
from typing import cast

from agent_farm.consent import Request
from agent_farm.errors import NotFound, UsageError, nearest
from agent_farm.inside import require_inside
from agent_farm.paths import FarmPaths
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.mcp_config import Transport
from agent_farm.sessions.butler_table import ButlerError, Table
from agent_farm.sessions.cron import CATCH_UP_SECONDS, last_moment, require_cron
from agent_farm.sessions.transport import transport_problem
from agent_farm.sessions.trigger_sources import TASK_NAME
from agent_farm.settings import Settings, open_settings
from agent_farm.settings_keys import load_document

__all__ = ["Butler", "ButlerError", "ScheduleEntry", "load_butler"]

FILE_NAME = "butler.toml"
NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9_-]{0,63}")

_BUTLER_KEYS = (
    "name",
    "port",
    "runtime",
    "model",
    "max_concurrent_sessions",
    "max_queued_sessions",
    "session_timeout",
    "transport",
    "reads_checkout",
    "env",
    "schedule",
)
_SCHEDULE_KEYS = ("name", "cron", "prompt", "timezone", "cwd", "late", "until")


@dataclass(frozen=True, slots=True)
class ScheduleEntry:
    """`cwd` is where its sessions run, from the checkout's top; else it is the butler's own directory.

    A due time that is missed is made up within `late` seconds, with 0 however late. After `until`, a day or a
    time of that zone, it is due no more.
    """

    name: str
    cron: str
    prompt: str
    timezone: str | None = None
    cwd: str | None = None
    late: float = CATCH_UP_SECONDS
    until: str | None = None


@dataclass(frozen=True, slots=True)
class Butler:
    """`directory` is where its sessions run; `roster` is what its includes are relative to.

    `runtime` and `model` are what its own file says; the farm's settings come after them, at each session.
    `requests` are what its user agrees to before one of its sessions runs.
    `reads_checkout`: its sessions may read the checkout that they are asked about.
    """

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
    reads_checkout: bool = False
    schedules: tuple[ScheduleEntry, ...] = ()
    requests: tuple[Request, ...] = ()


def roster_directory(root: Path) -> Path:
    return root / "codev" / "roster"


def farm_butler_name(root: Path) -> str:
    return FarmPaths(root).farm_name


def butler_names(root: Path) -> list[str]:
    """The butlers that `codev/roster/` describes."""
    roster = roster_directory(root)
    return sorted(file.parent.name for file in roster.glob(f"*/{FILE_NAME}"))


def all_butler_names(root: Path) -> list[str]:
    """Those of the roster and, beside several, the farm's own."""
    names = butler_names(root)
    return names if len(names) == 1 else [farm_butler_name(root), *names]


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
    raise NotFound(
        f"No butler {name}",
        why=choices(name, [*names, farm_butler_name(root)]),
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
    settings = open_settings(root)
    configured_runtime(root, settings)
    directory = FarmPaths(root).state / "butler"
    roster = require_inside(root, roster_directory(root))
    return Butler(
        name=name,
        directory=directory,
        roster=roster if roster.is_dir() else directory,
        port=settings.number("server.port"),
        optional_env=settings.values["env.pass"],  # guarded where a session is started
        reads_checkout=True,
    )


def _from_file(root: Path, directory: Path) -> Butler:
    file = directory / FILE_NAME
    for path in (directory, file, directory / "CLAUDE.md", directory / "AGENTS.md"):
        require_inside(root, path)
    whole = Table(file, "", load_document(file))
    whole.require_known(("butler", "modules"))
    table, modules = whole.table("butler"), whole.table("modules")
    table.require_known(_BUTLER_KEYS)
    env = table.table("env")
    env.require_known(("required", "optional"))
    name = table.text("name", NAME) if "name" in table.values else directory.name
    if name != directory.name:
        raise table.error(f"butler.name is {name}", f"Its directory is called {directory.name}.")
    settings = open_settings(root)
    runtime = _runtime(root, table)
    in_force = runtime or configured_runtime(root, settings)
    return Butler(
        name=name,
        directory=directory,
        roster=directory.parent,
        port=table.number("port", settings.number("server.port"), least=0),
        runtime=runtime,
        model=table.text_or_none("model"),
        max_concurrent_sessions=table.number("max_concurrent_sessions", 1, least=1),
        max_queued_sessions=table.number("max_queued_sessions", 100, least=0),
        session_timeout=table.number("session_timeout", 3600, least=1),
        transport=_transport(root, table, in_force),
        required_env=env.variables("required"),
        optional_env=(*env.variables("optional"), *settings.values["env.pass"]),
        module_credentials=_module_credentials(modules),
        memory="memory" in modules.values and modules.table("memory").flag("enabled", default=True),
        reads_checkout=table.flag("reads_checkout", default=name == own_butler_name(root)),
        schedules=_schedules(table),
        requests=tuple(_requests(root, directory, env, modules)),
    )


def _requests(root: Path, directory: Path, env: Table, modules: Table) -> Iterator[Request]:
    """The variables its sessions get, and the scripts they may run, byte for byte."""
    place = directory.relative_to(root)
    given = {key: env.variables(key) for key in ("required", "optional")}
    given |= {module: modules.table(module).variables("credentials") for module in modules.values}
    variables = [f"{name}: {', '.join(names)}" for name, names in given.items() if names]
    if variables:
        yield Request(f"{place}/{FILE_NAME} variables", "\n".join(variables))
    skills = sorted(path for path in (directory / "skills").rglob("*") if not path.is_dir())
    if skills:
        names = "\n".join(str(path.relative_to(directory / "skills")) for path in skills)
        yield Request(f"{place}/skills", names, tuple(require_inside(root, path) for path in skills))


def _runtime(root: Path, table: Table) -> str | None:
    name = table.text_or_none("runtime")
    if name is not None and (problem := _runtime_problem(root, name)):
        raise table.error(f"butler.runtime is {name!r}, which is not a runtime", problem, "af runtimes")
    return name


def configured_runtime(root: Path, settings: Settings) -> str | None:
    """`[spawn] runtime`, which a butler without one of its own has."""
    name = settings.text("spawn.runtime")
    if name is not None and (problem := _runtime_problem(root, name)):
        source = settings.source("spawn.runtime")
        raise ButlerError(
            f"{source}: spawn.runtime is {name!r}, which is not a runtime", why=problem, hint="af runtimes"
        )
    return name


def _runtime_problem(root: Path, name: str) -> str | None:
    known = adapter_names(root)
    return None if name in known else choices(name, known)


def choices(name: str, known: Sequence[str]) -> str:
    """What there is in the place of `name`, the one that was probably meant first."""
    close = nearest(name, known)
    return f"{f'Did you mean {close}? ' if close else ''}There are: {', '.join(known)}"


def _transport(root: Path, table: Table, runtime: str | None) -> Transport:
    transport = cast(Transport, table.choice("transport", ("http", "sse")))
    if transport == "http" or runtime is None:
        return transport
    if problem := transport_problem(get_adapter(runtime, root), transport):
        raise table.error(f"butler.transport is {transport}", problem)
    return transport


def _schedules(butler: Table) -> tuple[ScheduleEntry, ...]:
    schedules = tuple(_schedule(table) for table in butler.tables("schedule"))
    names = [schedule.name for schedule in schedules]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise butler.error(f"two schedules are called {doubled[0]}", None)
    return schedules


def _schedule(table: Table) -> ScheduleEntry:
    table.require_known(_SCHEDULE_KEYS)
    schedule = ScheduleEntry(
        name=table.text("name", TASK_NAME),
        cron=table.text("cron"),
        prompt=table.text("prompt"),
        timezone=table.text_or_none("timezone"),
        cwd=table.text_or_none("cwd"),
        late=table.number("late", CATCH_UP_SECONDS, least=0),
        until=_moment(table, "until"),
    )
    try:
        require_cron(schedule.cron, schedule.timezone)
        _require_inside(schedule.cwd)
        last_moment(schedule.until, schedule.timezone)
    except UsageError as error:
        raise table.error(f"schedule {schedule.name}: {error.what}", error.why, error.hint) from error
    return schedule


def _require_inside(cwd: str | None) -> None:
    """A file that came with the repository names no place outside of it."""
    place = PurePosixPath(cwd or ".")
    if place.is_absolute() or ".." in place.parts or "\0" in str(place):
        raise UsageError(f"cwd is {cwd!r}", why="It has to be a directory of the checkout, from its top.")


def _moment(table: Table, key: str) -> str | None:
    """TOML has days and times of its own."""
    value = table.values.get(key)
    return value.isoformat() if isinstance(value, date) else table.text_or_none(key)


def _module_credentials(modules: Table) -> tuple[str, ...]:
    names = [name for module in modules.values for name in modules.table(module).variables("credentials")]
    return tuple(dict.fromkeys(names))
