"""`sync`: move a builder's commits onto their base as it is now."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.git.merging import MergeConflicts
from agent_farm.landing.stacking import Ground, find_ground, move_onto
from agent_farm.launch import as_command
from agent_farm.operations.builders import SomeBuilders, choose_each, each
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request, gathered
from agent_farm.operations.send import deliver_all
from agent_farm.shield import Shield


class Sync(Request):
    ids: SomeBuilders


class Synced(Answer):
    """`base` is what it stands on now; `before` and `after` are equal if it already did."""

    id: str
    base: str
    base_commit: str
    before: str
    after: str


class AllSynced(OfSeveral):
    """Builders that failed are unchanged."""

    synced: tuple[Synced, ...]


@in_parts(
    "Move builders' own commits onto the branch where they will land",
    gathered(AllSynced, synced=Synced, failed=Failure),
    effect="changes",
    repeats=True,
    outside=True,
    details="A stacked builder moves to where the work below it has landed, any other one to its base as"
    " it is now. It has to be idle, with everything committed. A builder whose commits conflict"
    " is left as it was, and gets a message.",
    elsewhere="there",
)
def sync(context: Context, request: Sync) -> Iterator[Synced | Failure]:
    records, unknown = choose_each(context, request.ids)
    yield from unknown
    yield from each(records, lambda record: _sync(context.farm, record), alone=not unknown)


def _sync(farm: Farm, record: BuilderRecord) -> Synced:
    with hold(farm, record.id) as record:
        record.require_begun()
        status = read_status(farm, record)
        if not (status.is_finished or status.state == "idle"):
            raise UsageError(
                f"{record.id} is {status.state}",
                why="Its files are only moved while nobody works on them.",
                hint=as_command("af", "wait", record.id),
            )
        ground = find_ground(farm, record)
        try:
            with Shield() as shield:
                before, after = move_onto(farm, record, ground, shield)
                farm.registry.put(replace(record, base=ground.base, base_commit=ground.commit, stack=None))
                note(farm, record, "synced", f"onto {ground.base} at {ground.commit[:10]}")
        except MergeConflicts as error:
            _tell_builder(farm, record, ground, error)
            raise MergeConflicts(
                f"{record.id} conflicts with {ground.base}; nothing was changed",
                why="It got a message, and can rebase by itself." if status.state == "idle" else None,
                evidence=error.evidence,
                hint=as_command("af", "attach", record.id),
            ) from None
        return Synced(id=record.id, base=ground.base, base_commit=ground.commit, before=before, after=after)


def _tell_builder(farm: Farm, record: BuilderRecord, ground: Ground, error: MergeConflicts) -> None:
    """Best effort: the caller sees the conflict anyway."""
    files = ", ".join(error.evidence)
    command = as_command("git", "rebase", "--onto", ground.commit, record.base_commit)
    text = f"Your commits conflict with {ground.base}, where they will land, in: {files}. "
    text += f"Nothing was changed. Rebase them ({command}), resolve the conflicts and run the tests."
    with suppress(AgentFarmError, OSError):
        list(deliver_all(farm, [record], text))
