"""What the page asks of schedules, of all butlers."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from agent_farm.operations.operation import Answer, Context, Operation, Request
from agent_farm.server.session_verbs import ButlerName, Started, changes, reads, start
from agent_farm.sessions.agreement import schedule_json
from agent_farm.sessions.butlers import ScheduleEntry, all_butler_names, load_butler
from agent_farm.sessions.cron import CATCH_UP_SECONDS
from agent_farm.sessions.running import RunningButler
from agent_farm.sessions.schedules import ScheduleStore
from agent_farm.sessions.session import SessionRequest
from agent_farm.sessions.trigger_sources import SCHEDULE_PREFIX

ScheduleName = Annotated[str, Meta(description="Name of a schedule")]


class Schedules(Request):
    pass


class FoundSchedules(Answer):
    schedules: tuple[dict[str, Any], ...]


class OneSchedule(Request):
    name: ScheduleName
    butler: ButlerName = None


class NewSchedule(Request):
    name: ScheduleName
    cron: Annotated[str, Meta(description="Five fields")]
    prompt: Annotated[str, Meta(description="What is asked when it is due")]
    timezone: Annotated[str | None, Meta(description="As in Europe/Berlin; default: this machine's")] = None
    cwd: Annotated[
        str | None, Meta(description="Where to run, from the checkout's top; default: the butler's directory")
    ] = None
    late: Annotated[float, Meta(ge=0, description="Made up within so many seconds; 0: however late")] = (
        CATCH_UP_SECONDS
    )
    until: Annotated[str | None, Meta(description="The last day, as in 2027-03-31, or a time")] = None
    butler: ButlerName = None


class Switch(Request):
    name: ScheduleName
    enabled: bool
    butler: ButlerName = None


class ChangedSchedule(Answer):
    schedule: dict[str, Any]


class RemovedSchedule(Answer):
    removed: str


class Fires(Answer):
    """When it was due, when it was taken up, and what became of it."""

    fires: tuple[dict[str, Any], ...]


def schedule_verbs(running: RunningButler) -> tuple[Operation[Any, Any], ...]:
    def store_of(butler: str | None) -> ScheduleStore:
        chosen = load_butler(running.root, butler)
        store = ScheduleStore(running.database, chosen.name)
        store.take_from_file(chosen.schedules)
        return store

    def find(context: Context, asked: Schedules) -> FoundSchedules:
        stores = map(store_of, all_butler_names(running.root))
        found = (schedule_json(running.root, store.butler, one) for store in stores for one in store.all())
        return FoundSchedules(tuple(found))

    def add(context: Context, asked: NewSchedule) -> ChangedSchedule:
        entry = ScheduleEntry(
            asked.name, asked.cron, asked.prompt, asked.timezone, asked.cwd, asked.late, asked.until
        )
        store = store_of(asked.butler)
        return ChangedSchedule({"butler": store.butler, **store.create(entry).to_json()})

    def switch(context: Context, asked: Switch) -> ChangedSchedule:
        store = store_of(asked.butler)
        changed = store.update(asked.name, enabled=asked.enabled)
        return ChangedSchedule({"butler": store.butler, **changed.to_json()})

    def run(context: Context, asked: OneSchedule) -> Started:
        """Where and as whom it runs when it is due; its due times stay as they are."""
        store = store_of(asked.butler)
        chosen = store.get(asked.name)
        cwd = str(chosen.directory(running.root)) if chosen.cwd else None
        request = SessionRequest(prompt=chosen.prompt, cwd=cwd, trigger_source=SCHEDULE_PREFIX + chosen.name)
        return start(running, store.butler, request)

    def remove(context: Context, asked: OneSchedule) -> RemovedSchedule:
        store_of(asked.butler).delete(asked.name)
        return RemovedSchedule(asked.name)

    def history(context: Context, asked: OneSchedule) -> Fires:
        store = store_of(asked.butler)
        return Fires(tuple(store.fires(store.get(asked.name).name)))

    return (
        reads("schedules", "List all schedules, with when each is due next", Schedules, FoundSchedules, find),
        reads("schedule_history", "When it was due, and what became of it", OneSchedule, Fires, history),
        changes(
            "add_schedule",
            "Run a prompt whenever it is due",
            NewSchedule,
            ChangedSchedule,
            add,
        ),
        changes("switch_schedule", "Enable or disable a schedule", Switch, ChangedSchedule, switch),
        changes("run_schedule", "Run a schedule's prompt now, due or not", OneSchedule, Started, run),
        changes("remove_schedule", "Remove a schedule", OneSchedule, RemovedSchedule, remove),
    )
