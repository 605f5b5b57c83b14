"""`schedule_…`: prompts that run at set times."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from msgspec import Meta
from msgspec.structs import replace

from agent_farm.errors import UsageError
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import acts, reads, served
from agent_farm.operations.operation import ARCHITECT, SESSIONS, Answer, Context, Request
from agent_farm.operations.served import database_of, running, whose
from agent_farm.operations.sessions import log_of
from agent_farm.operations.trigger import Trigger, Triggered, agree_first, session_request, start
from agent_farm.sessions.butler_file import CRON, LATE, PROMPT, UNTIL, ScheduleName, Seconds, require_schedule
from agent_farm.sessions.butlers import ScheduleEntry, load_butler
from agent_farm.sessions.roster import all_butler_names
from agent_farm.sessions.runtime_choice import most_permissions, narrower, usual_permissions
from agent_farm.sessions.schedules import Fire, Origin, Schedule, ScheduleStore, may_fire, schedule_directory
from agent_farm.sessions.session import SessionRequest
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX

if TYPE_CHECKING:
    from agent_farm.sessions.running_butler import RunningButler

OfButler = Annotated[str | None, Meta(description="Butler it belongs to; default: the farm's own")]


class ScheduleShown(ScheduleEntry, Answer, frozen=True, kw_only=True):  # type: ignore[misc]  # both are frozen
    """`next_due` is in seconds since 1970, null if it is off or over. It only fires once `agreed`."""

    butler: str
    enabled: bool
    origin: Origin
    next_due: float | None
    agreed: bool


class FoundSchedules(Answer):
    schedules: tuple[ScheduleShown, ...]


class OneSchedule(Answer):
    schedule: ScheduleShown


def _store(context: Context, butler: str | None) -> ScheduleStore:
    """The schedules of one butler, brought up to date with its file."""
    own = context.butlers.own.name if context.butlers else None
    known = load_butler(context.farm.root, whose(context, butler) or own)
    store = ScheduleStore(database_of(context), known.name)
    store.take_from_file(known.schedules)
    return store


def _shown(context: Context, store: ScheduleStore, one: Schedule) -> ScheduleShown:
    own = ("butler", "agreed")
    known = {name: getattr(one, name) for name in ScheduleShown.__struct_fields__ if name not in own}
    agreed = may_fire(context.farm.root, store.butler, one)
    return ScheduleShown(**known, butler=store.butler, agreed=agreed)


class ScheduleList(Request):
    butler: Annotated[str | None, Meta(description="Only of this butler")] = None


@reads("List the schedules of all butlers, or of one, and when each is next due", who=SESSIONS)
def schedule_list(context: Context, request: ScheduleList) -> FoundSchedules:
    everything = context.caller == "architect" and request.butler is None
    names = all_butler_names(context.farm.root) if everything else [request.butler]
    stores = [_store(context, name) for name in names]
    return FoundSchedules(tuple(_shown(context, store, one) for store in stores for one in store.all()))


class ScheduleCreate(ScheduleEntry, Request, frozen=True):  # type: ignore[misc]  # both are frozen
    butler: OfButler = None


@acts("Run a prompt whenever a cron expression is due", who=SESSIONS, tolerant=True)
def schedule_create(context: Context, request: ScheduleCreate) -> OneSchedule:
    _require_modest(context, request.butler, request.cwd)
    require_schedule(request)
    schedule_directory(context.farm.root, request)
    store = _store(context, request.butler)
    return OneSchedule(_shown(context, store, store.create(request.entry)))


def _require_modest(context: Context, butler: str | None, cwd: str | None) -> None:
    """Keep a session from scheduling anything that may do more than the session itself."""
    if context.caller == "architect":
        return
    if cwd is not None:
        raise UsageError(
            "Only the architect can give a schedule a cwd",
            why="Otherwise a session could run something where it may not run itself.",
        )
    root, own = context.farm.root, most_permissions(log_of(context), context.caller_id)
    usual = usual_permissions(root, load_butler(root, whose(context, butler)), context.environ)
    if narrower(own, usual) != usual:
        raise UsageError(
            f"A session with permissions {own} cannot write the prompt of a schedule",
            why=f"It would run with permissions {usual}.",
        )


class ScheduleUpdate(Request):
    name: ScheduleName
    cron: Annotated[str | None, CRON] = None
    prompt: Annotated[str | None, PROMPT] = None
    enabled: Annotated[bool | None, Meta(description="Whether it fires")] = None
    late: Annotated[Seconds | None, LATE] = None
    until: Annotated[str | None, UNTIL] = None
    butler: OfButler = None


@acts("Change a schedule, or switch it on or off", who=SESSIONS, tolerant=True, repeats=True)
def schedule_update(context: Context, request: ScheduleUpdate) -> OneSchedule:
    store = _store(context, request.butler)
    if request.prompt is not None:
        _require_modest(context, request.butler, store.get(request.name).cwd)
    names = ("cron", "prompt", "enabled", "late", "until")
    changed = store.update(request.name, **{name: getattr(request, name) for name in names})
    return OneSchedule(_shown(context, store, changed))


class NamedSchedule(Request):
    name: ScheduleName
    butler: OfButler = None


class RemovedSchedule(Answer):
    removed: str


@acts(
    "Remove a schedule; one of a butler.toml is removed there", effect="destroys", who=SESSIONS, tolerant=True
)
def schedule_delete(context: Context, request: NamedSchedule) -> RemovedSchedule:
    _store(context, request.butler).delete(request.name)
    return RemovedSchedule(request.name)


class Fires(Answer):
    fires: tuple[Fire, ...]
    schedule: ScheduleShown


@reads("List when a schedule was due, and what came of it")
def schedule_history(context: Context, request: NamedSchedule) -> Fires:
    store = _store(context, request.butler)
    one = store.get(request.name)
    return Fires(tuple(store.fires(one.name)), _shown(context, store, one))


class ScheduleRun(Request):
    name: ScheduleName
    wait: Annotated[bool, Meta(description="Wait for its end")] = True
    butler: OfButler = None
    yes: Yes = False


def _prepare(context: Context, request: ScheduleRun) -> ScheduleRun:
    agree_first(context, *_trigger(context, request))
    return request


@served(
    "Run a schedule's prompt now, due or not; its due times stay as they are",
    prepare=_prepare,
    effect="changes",
    who=ARCHITECT,
    outside=True,
)
async def schedule_run(context: Context, request: ScheduleRun) -> Triggered:
    """Runs in the directory, and as the butler, of its regular runs."""
    database = running(context).database
    butler, trigger, asked = await database.run(_planned, context, request)
    return await start(context, butler, asked, trigger)


def _planned(context: Context, request: ScheduleRun) -> tuple[RunningButler, Trigger, SessionRequest]:
    trigger, asked = _trigger(context, request)
    if request.yes:
        agree_first(context, trigger, asked)
    return running(context).of(trigger.butler), trigger, asked


def _trigger(context: Context, request: ScheduleRun) -> tuple[Trigger, SessionRequest]:
    """The session of a schedule; the session that asks for it becomes its parent."""
    store = _store(context, request.butler)
    one = store.get(request.name)
    place = one.directory(context.farm.root)
    trigger = Trigger(
        prompt=one.prompt,
        cwd=str(place) if place else None,
        wait=request.wait,
        butler=store.butler,
        yes=request.yes,
    )
    asked = session_request(context, trigger)
    if asked.trigger_source == "external":
        asked = replace(asked, trigger_source=SCHEDULE_PREFIX + one.name)
    return trigger, asked
