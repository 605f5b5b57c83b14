"""The declared form of butler.toml; a mistake is reported with its file and key."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping
from datetime import date
from pathlib import Path
from typing import Annotated, Any, Literal, TypeVar

import msgspec
from msgspec import Meta

from agent_farm.errors import AgentFarmError, UsageError, nearest
from agent_farm.sessions.cron import CATCH_UP_SECONDS, last_moment, require_cron
from agent_farm.sessions.trigger_sources import TASK_NAME

Text = Annotated[str, Meta(pattern=r"\S")]
ButlerName = Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_-]{0,63}\Z")]
Variables = tuple[Annotated[str, Meta(pattern=r"^[A-Za-z_][A-Za-z0-9_]*\Z")], ...]
AtLeast0 = Annotated[int, Meta(ge=0)]
AtLeast1 = Annotated[int, Meta(ge=1)]
Seconds = Annotated[float, Meta(ge=0)]
ScheduleName = Annotated[str, Meta(description="Name of the schedule: letters, digits, . _ and -")]
CRON = Meta(description="Five fields: minute hour day month weekday, as in 0 8 * * 1-5")
PROMPT = Meta(description="Prompt to run when it is due")
LATE = Meta(description="A missed run is made up for within this many seconds; 0: however late")
UNTIL = Meta(description="Last day, as in 2027-03-31, or a time on it")

T = TypeVar("T")


class ButlerError(AgentFarmError):
    code = "butler"


class ScheduleEntry(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """`cwd` is where its sessions run, relative to the checkout's top; by default the butler's own directory.

    A missed due time is made up for within `late` seconds; 0 means however late. After `until`, a day or a
    time in the schedule's zone, it is no longer due.
    """

    name: ScheduleName
    cron: Annotated[str, CRON]
    prompt: Annotated[str, PROMPT]
    timezone: Annotated[str | None, Meta(description="As in Europe/Berlin; default: the machine's")] = None
    cwd: Annotated[
        str | None,
        Meta(description="Directory to run in, from the checkout's top; default: the butler's"),
    ] = None
    late: Annotated[Seconds, LATE] = CATCH_UP_SECONDS
    until: Annotated[str | None, UNTIL] = None

    @property
    def entry(self) -> ScheduleEntry:
        """The schedule's own fields, taken from a larger value."""
        return ScheduleEntry(**{name: getattr(self, name) for name in ScheduleEntry.__struct_fields__})


def require_schedule(entry: ScheduleEntry) -> None:
    """UsageError for a schedule that could never fire."""
    if not TASK_NAME.fullmatch(entry.name):
        raise UsageError(
            f"{entry.name!r} cannot be the name of a schedule", why="Use letters, digits, . _ and -."
        )
    if not entry.prompt.strip() or "\0" in entry.prompt:
        raise UsageError("its prompt is empty or contains NUL")
    if not 0 <= entry.late < math.inf or "\0" in (entry.cwd or ""):
        raise UsageError("late is not a number of seconds, or cwd contains NUL")
    require_cron(entry.cron, entry.timezone)
    last_moment(entry.until, entry.timezone)


class EnvTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    required: Variables = ()
    optional: Variables = ()


class ButlerTable(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    name: ButlerName | None = None
    port: AtLeast0 | None = None
    runtime: Text | None = None
    model: Text | None = None
    max_concurrent_sessions: AtLeast1 = 1
    max_queued_sessions: AtLeast0 = 100
    session_timeout: AtLeast1 = 3600
    transport: Literal["http", "sse"] = "http"
    reads_checkout: bool | None = None
    env: EnvTable = EnvTable()
    schedule: tuple[ScheduleEntry, ...] = ()


class ModuleTable(msgspec.Struct, frozen=True):
    """A module may store more than this here."""

    enabled: bool = True
    credentials: Variables = ()


class ButlerFile(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    butler: ButlerTable = ButlerTable()
    modules: dict[str, Any] = {}


_TABLES: Mapping[str, type[msgspec.Struct]] = {
    "": ButlerFile,
    "butler": ButlerTable,
    "butler.env": EnvTable,
    "butler.schedule": ScheduleEntry,
}
_MUST_BE = {
    "int": "a whole number",
    "float": "a number",
    "str": "a string",
    "bool": "true or false",
    "array": "tables",
    "object": "a table",
}
_PLACE = re.compile(r"(?s)(.*?)(?: - at `\$\.?(.*?)`)?")
_FIELD = re.compile(r"Object (contains unknown|missing required) field `(.*)`")
_EXPECTED = re.compile(r"Expected `(\w+)")
_LEAST = re.compile(r">= (\d+)")


def read_butler_file(file: Path, document: Mapping[str, Any]) -> tuple[ButlerTable, dict[str, ModuleTable]]:
    """The butler's own table, and its modules by name."""
    whole = _convert(file, "", _with_moments_as_text(document), ButlerFile)
    modules = {
        name: _convert(file, f"modules.{name}", table, ModuleTable) for name, table in whole.modules.items()
    }
    return whole.butler, modules


def mistake(file: Path, what: str, why: str | None = None, hint: str | None = None) -> ButlerError:
    return ButlerError(f"{file}: {what}", why=why, hint=hint)


def _with_moments_as_text(document: Any) -> Any:
    """TOML has types for dates and times."""
    if isinstance(document, dict):
        return {key: _with_moments_as_text(value) for key, value in document.items()}
    if isinstance(document, list):
        return [_with_moments_as_text(value) for value in document]
    return document.isoformat() if isinstance(document, date) else document


def _convert(file: Path, table: str, values: Any, kind: type[T]) -> T:
    try:
        return msgspec.convert(values, kind)
    except msgspec.ValidationError as error:
        raise _named(file, table, values, str(error)) from None


def _named(file: Path, table: str, values: Any, text: str) -> ButlerError:
    match = _PLACE.fullmatch(text)
    what, place = (match[1], match[2] or "") if match else (text, "")
    key = ".".join(part for part in (table, re.sub(r"\[\d+\]", "", place)) if part)
    if field := _FIELD.fullmatch(what):
        inner = f"{key}.{field[2]}" if key else field[2]
        if field[1] == "missing required":
            return mistake(file, f"{inner} must be a string", "It is missing.")
        return mistake(file, f"unknown key {inner}", _known_keys(key, field[2]))
    found = _value_at(values, place)
    if key.endswith(("env.required", "env.optional", ".credentials")):
        return mistake(file, f"{key} must list names of environment variables", f"It is {found!r}.")
    if key.endswith(".transport"):
        return mistake(file, f"{key} must be http or sse", f"It is {found!r}.")
    if key.endswith(".name") and isinstance(found, str):
        return mistake(file, f"{key} is {found!r}", "Letters, digits, - and _ are allowed.")
    expected, least = _EXPECTED.match(what), _LEAST.search(what)
    kind = _MUST_BE.get(expected[1] if expected else "", "something else")
    bound = f", at least {least[1]}" if least else ""
    return mistake(file, f"{key} must be {kind}{bound}", f"It is {found!r}.")


def _known_keys(table: str, name: str) -> str:
    known = _TABLES[table].__struct_fields__
    if close := nearest(name, known):
        return f"Did you mean {f'{table}.{close}' if table else close}?"
    return f"Known keys: {', '.join(known)}"


def _value_at(values: Any, place: str) -> Any:
    """The value in the file; for an item in a list of names, the whole list."""
    for key, index in re.findall(r"(\w+)|\[(\d+)\]", place):
        if key:
            values = values[key]
        elif isinstance(values[int(index)], dict):
            values = values[int(index)]
    return values
