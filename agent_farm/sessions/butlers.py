"""Butler: a resident agent, as described by its directory and `butler.toml`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

from agent_farm.consent import ConsentRequest
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError, NotFound, UsageError, there_are
from agent_farm.inside import require_inside
from agent_farm.paths import FarmPaths
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.mcp_config import Transport
from agent_farm.sessions.butler_file import (
    ButlerError,
    EnvTable,
    ModuleTable,
    ScheduleEntry,
    mistake,
    read_butler_file,
    require_schedule,
)
from agent_farm.sessions.roster import (
    FILE_NAME,
    all_butler_names,
    butler_names,
    farm_butler_name,
    own_butler_name,
    roster_directory,
)
from agent_farm.settings import Settings, open_settings
from agent_farm.settings_document import load_document

__all__ = ["Butler", "ButlerError", "ScheduleEntry", "load_butler"]

_TRANSPORTS = {"http": "streamable HTTP", "sse": "SSE"}


@dataclass(frozen=True, slots=True)
class Butler:
    """`directory` is where its sessions run; includes are relative to `roster`.

    `runtime` and `model` are those in its own file; the farm's settings apply if they are None, anew for each
    session. `requests` are what its user approves before one of its sessions runs. `reads_checkout`: its
    sessions may read the checkout that they are asked about. `is_packaged`: no file describes it, and on
    another machine it has another name.
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
    requests: tuple[ConsentRequest, ...] = ()
    is_packaged: bool = False


def load_all_butlers(root: Path) -> Iterator[Butler]:
    """The farm's own first; errors in another one's file are reported when that one is used."""
    own = load_butler(root)
    yield own
    for name in all_butler_names(root):
        with suppress(AgentFarmError):
            if name != own.name:
                yield load_butler(root, name)


def load_butler(root: Path, name: str | None = None) -> Butler:
    """The named butler; without a name, the farm's own."""
    names = butler_names(root)
    name = name or own_butler_name(root)
    if name in names:
        return _from_file(root, roster_directory(root) / name)
    if name == farm_butler_name(root):
        return _packaged(root, name)
    raise NotFound(
        f"No butler {name}",
        why=there_are(name, [*names, farm_butler_name(root)]),
        hint=f"$EDITOR codev/roster/{name}/{FILE_NAME}",
    )


def require_claude_md(butler: Butler) -> None:
    """A butler without a CLAUDE.md gets the packaged one; an existing file is never touched."""
    file = butler.directory / "CLAUDE.md"
    if not file.exists():
        make_directory(butler.directory, alone=True)
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
        optional_env=settings.values["env.pass"],  # guarded when a session starts
        reads_checkout=True,
        is_packaged=True,
    )


def _from_file(root: Path, directory: Path) -> Butler:
    file = directory / FILE_NAME
    for path in (directory, file, directory / "CLAUDE.md", directory / "AGENTS.md"):
        require_inside(root, path)
    table, modules = read_butler_file(file, load_document(file))
    name = table.name or directory.name
    if name != directory.name:
        raise mistake(file, f"butler.name is {name}", f"Its directory is called {directory.name}.")
    settings = open_settings(root)
    if table.runtime and (problem := _runtime_problem(root, table.runtime)):
        what = f"butler.runtime is {table.runtime!r}, which is not a runtime"
        raise mistake(file, what, problem, "af runtimes")
    _require_transport(root, file, table.transport, table.runtime or configured_runtime(root, settings))
    _require_schedules(file, table.schedule)
    memory = modules.get("memory")
    credentials = [name for module in modules.values() for name in module.credentials]
    return Butler(
        name=name,
        directory=directory,
        roster=directory.parent,
        port=settings.number("server.port") if table.port is None else table.port,
        runtime=table.runtime,
        model=table.model,
        max_concurrent_sessions=table.max_concurrent_sessions,
        max_queued_sessions=table.max_queued_sessions,
        session_timeout=table.session_timeout,
        transport=table.transport,
        required_env=table.env.required,
        optional_env=(*table.env.optional, *settings.values["env.pass"]),
        module_credentials=tuple(dict.fromkeys(credentials)),
        memory=memory is not None and memory.enabled,
        reads_checkout=name == own_butler_name(root)
        if table.reads_checkout is None
        else table.reads_checkout,
        schedules=table.schedule,
        requests=tuple(_requests(root, directory, table.env, modules)),
    )


def _requests(
    root: Path, directory: Path, env: EnvTable, modules: Mapping[str, ModuleTable]
) -> Iterator[ConsentRequest]:
    """The variables that its sessions get, and the scripts that they may run, byte for byte."""
    place = directory.relative_to(root)
    given = {"required": env.required, "optional": env.optional}
    given |= {name: module.credentials for name, module in modules.items()}
    variables = [f"{name}: {', '.join(names)}" for name, names in given.items() if names]
    if variables:
        yield ConsentRequest(f"{place}/{FILE_NAME} variables", "\n".join(variables))
    skills = sorted(path for path in (directory / "skills").rglob("*") if not path.is_dir())
    if skills:
        names = "\n".join(str(path.relative_to(directory / "skills")) for path in skills)
        yield ConsentRequest(f"{place}/skills", names, tuple(require_inside(root, path) for path in skills))


def configured_runtime(root: Path, settings: Settings) -> str | None:
    """`[spawn] runtime`, for a butler without a runtime of its own."""
    name = settings.text("spawn.runtime")
    if name is not None and (problem := _runtime_problem(root, name)):
        source = settings.source("spawn.runtime")
        raise ButlerError(
            f"{source}: spawn.runtime is {name!r}, which is not a runtime", why=problem, hint="af runtimes"
        )
    return name


def _runtime_problem(root: Path, name: str) -> str | None:
    known = adapter_names(root)
    return None if name in known else there_are(name, known)


def _require_transport(root: Path, file: Path, transport: Transport, runtime: str | None) -> None:
    if transport == "http" or runtime is None:
        return
    if problem := transport_problem(get_adapter(runtime, root), transport):
        raise mistake(file, f"butler.transport is {transport}", problem)


def transport_problem(adapter: RuntimeAdapter, transport: Transport) -> str | None:
    """Why the runtime cannot use `transport`, and what to write instead."""
    if transport in adapter.cli.transports:
        return None
    spoken = " and ".join(_TRANSPORTS[name] for name in adapter.cli.transports)
    return f'{adapter.name} only speaks {spoken}: write transport = "{adapter.cli.transports[0]}".'


def _require_schedules(file: Path, schedules: Sequence[ScheduleEntry]) -> None:
    names = [schedule.name for schedule in schedules]
    if doubled := sorted({name for name in names if names.count(name) > 1}):
        raise mistake(file, f"two schedules are called {doubled[0]}")
    for schedule in schedules:
        try:
            require_schedule(schedule)
            _require_inside(schedule.cwd)
        except UsageError as error:
            raise mistake(file, f"schedule {schedule.name}: {error.what}", error.why, error.hint) from error


def _require_inside(cwd: str | None) -> None:
    """A file that came with the repository must name no place outside it."""
    place = PurePosixPath(cwd or ".")
    if place.is_absolute() or ".." in place.parts or "\0" in str(place):
        raise UsageError(
            f"cwd is {cwd!r}", why="It must be a directory of the checkout, as a path from its top."
        )
