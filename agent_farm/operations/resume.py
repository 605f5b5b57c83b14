"""`resume`: start a runtime again, with the same conversation and role."""

from __future__ import annotations

import os
from collections.abc import Collection, Iterator, Mapping, Sequence
from functools import partial
from typing import Annotated

from msgspec import Meta, Struct
from msgspec.structs import replace

from agent_farm.builders.events import last_conversation, load_events
from agent_farm.builders.record import BuilderRecord, draw_run
from agent_farm.builders.registry import Records
from agent_farm.builders.roles import load_role
from agent_farm.builders.status import ALIVE, Status
from agent_farm.consent import Consent
from agent_farm.documents import damaged
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.carried_output import carried_files, declared_output, fitting_output
from agent_farm.farm.chosen_runtime import Chosen, agree_to_start, choose_runtime
from agent_farm.farm.conversation_home import require_within_reach
from agent_farm.farm.ending import end_processes, program_in_session
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.locks import each_held
from agent_farm.farm.panes import Found, find_panes
from agent_farm.farm.preparation import setup_command
from agent_farm.farm.runtime_start import STARTS_AT_ONCE, prepare_start, start_runtime
from agent_farm.farm.waiting import require_room
from agent_farm.git.asking import side_by_side
from agent_farm.operations.builders import BuilderId, Yes, choose
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.operations.shown import BuilderShown, show_started
from agent_farm.own_files import read_own
from agent_farm.pane.launchfile import Copy


class Resume(Request):
    id: BuilderId
    say: Annotated[str | None, Meta(description="Text that tells it to continue, as in: Go on")] = None
    yes: Yes = False


class Resumed(Answer):
    builder: BuilderShown
    continues: Annotated[
        bool,
        Meta(
            description="Whether the conversation continues; otherwise it starts again with the same prompt"
        ),
    ]


@acts(
    "Start a builder's runtime again, with the same conversation and the same role",
    outside=True,
    pool="start",
    details="A builder whose turn was cut short is `interrupted` until it is told to continue.",
    elsewhere="there",
)
def resume(context: Context, request: Resume) -> Resumed:
    require_said(request.say)
    id = choose(context, request.id).id
    ((_, found),) = start_again(
        context, [id], {} if request.say is None else {id: request.say}, yes=request.yes
    )
    if isinstance(found, AgentFarmError):
        raise found
    return Resumed(show_started(context.farm, found.record), found.continues)


def require_said(text: str | None) -> None:
    if text is not None and not text.strip():
        raise UsageError("The text to send it is empty")


class Restarted(Struct, frozen=True):
    """`continues`: the conversation continues and got the given text; otherwise a new one got its prompt."""

    record: BuilderRecord
    continues: bool


Outcomes = dict[str, Restarted | AgentFarmError]


def start_again(
    context: Context, ids: Sequence[str], say: Mapping[str, str], *, yes: Consent
) -> Iterator[tuple[str, Restarted | AgentFarmError]]:
    def act(farm: Farm, records: Mapping[str, BuilderRecord]) -> Outcomes:
        return _start_all(replace(context, place=farm), records, say, yes=yes)

    return each_held(context.farm, ids, act)


class _Ready(Struct, frozen=True):
    """A builder that may be started: its record as it was, and as it will be."""

    before: BuilderRecord
    record: BuilderRecord
    chosen: Chosen
    continues: bool


def _start_all(
    context: Context, records: Mapping[str, BuilderRecord], say: Mapping[str, str], *, yes: Consent
) -> Outcomes:
    farm = context.farm
    ready, found = _prepare(context, records, yes=yes)
    found |= end_processes(farm, [one.before for one in ready.values()])
    ready = {id: one for id, one in ready.items() if id not in found}
    started = set[str]()
    with farm.registry.edit() as now:  # checked again under the lock: the queue may have taken the room
        found |= _without_room(farm, now, ready)
        ready = {id: one for id, one in ready.items() if id not in found}
        now.update({id: one.record for id, one in ready.items()})

    def start(id: str) -> Restarted:
        one = ready[id]
        _start(farm, one.record, one.chosen, say.get(id), continues=one.continues)
        started.add(id)
        return Restarted(one.record, one.continues)

    try:
        starts = {id: partial(start, id) for id in ready}
        found |= side_by_side(starts, workers=STARTS_AT_ONCE, step=partial(farm.step, "Starting"))
    finally:
        if failed := {id: one.before for id, one in ready.items() if id not in started}:
            with farm.registry.edit() as now:
                now.update(failed)
    return found


def _without_room(farm: Farm, records: Records, ids: Collection[str]) -> Outcomes:
    """Refuses the last ones, as many as there is no room for."""
    found = Outcomes()
    for id in reversed(list(ids)):
        try:
            require_room(farm, records, starting=len(ids) - len(found) - 1)
        except AgentFarmError as error:
            found[id] = error
        else:
            break
    return found


def _prepare(
    context: Context, records: Mapping[str, BuilderRecord], *, yes: Consent
) -> tuple[dict[str, _Ready], Outcomes]:
    """Those that can be started, and why the others cannot; nothing is changed yet."""
    farm = context.farm
    panes = find_panes(records.values())
    statuses = read_statuses(farm, records.values(), panes)
    ready, refused = dict[str, _Ready](), Outcomes()
    agreed = dict[tuple[str, str | None, str], Chosen]()
    for id, record in records.items():
        try:
            _require_resumable(farm, record, statuses[id], panes.get(id))
            wanted = (record.runtime, record.model, record.permissions)
            if wanted not in agreed:
                chosen = choose_runtime(farm, record.runtime, model=wanted[1], permissions=wanted[2])
                agree_to_start(farm, chosen, yes=yes, ask=context.ask)  # may have changed since the spawn
                agreed[wanted] = chosen
            require_room(farm, farm.registry.read(), starting=len(ready))
            ready[id] = _readied(farm, record, agreed[wanted])
        except AgentFarmError as error:
            refused[id] = error
    return ready, refused


def _readied(farm: Farm, record: BuilderRecord, chosen: Chosen) -> _Ready:
    submitted = chosen.adapter.cli.hooks.submitted
    conversation = last_conversation(load_events(farm.run(record.id).events), submitted)
    started = replace(
        record,
        run=draw_run(),
        socket=farm.tmux.path(os.environ),
        conversation_id=conversation or chosen.adapter.new_conversation_id(),
        state="running",
        reason=None,
        unlocked=chosen.unlock,
    )
    return _Ready(record, started, chosen, conversation is not None)


def _require_resumable(farm: Farm, record: BuilderRecord, status: Status, pane: Found | None) -> None:
    if status.state in ALIVE:
        raise UsageError(f"{record.id} is running ({status.state})", hint=f"af attach {record.id}")
    if status.state == "unknown":
        raise AgentFarmError(f"tmux could not be asked about {record.id}", why=status.reason)
    if status.state == "creating":
        raise AgentFarmError(f"{record.id} is being created", hint="af status")
    if status.state == "queued":
        raise UsageError(f"{record.id} waits to be started ({status.reason})", hint="af queue")
    if not record.worktree_path.is_dir():
        raise AgentFarmError(
            f"The worktree of {record.id} is gone", why=record.worktree, hint="af doctor --fix"
        )
    if farm.is_half_made(record):
        raise AgentFarmError(
            f"The start of {record.id} was cut short before its worktree was whole",
            why=f"It was kept because somebody's work is in {record.worktree}.",
            hint=f"af diff {record.id}",
        )
    if pane is not None and (program := program_in_session(pane)):
        raise AgentFarmError(
            f"{program} is running in the session of {record.id}",
            why="Resuming would end it.",
            hint=f"af attach {record.id}",
        )


def _lost_output(farm: Farm, record: BuilderRecord) -> list[Copy]:
    """Carried output that was deleted when the builder was removed, since it was nobody's work."""
    names = declared_output(farm, farm.settings.items("worktree.carry"))
    tree = farm.tree(record) if names else None
    if tree is None:
        return []
    lost = [name for name in names if not os.path.lexists(tree.path / name)]
    return carried_files(farm, tree, fitting_output(tree, lost))


def _start(farm: Farm, record: BuilderRecord, chosen: Chosen, say: str | None, *, continues: bool) -> None:
    if not continues and record.prompt_file is not None:
        say = _prompt_again(farm, record)
    start = prepare_start(
        farm,
        record,
        chosen,
        prompt=say if continues or record.prompt_file else None,
        role_text=load_role(farm.run(record.id).role) if record.role else None,
        resume=continues,
    )
    if continues:
        require_within_reach(record, chosen.adapter.cli, start)
    setup = setup_command(farm) if not continues else None
    start_runtime(farm, record, chosen, start, copies=_lost_output(farm, record), setup=setup)


def _prompt_again(farm: Farm, record: BuilderRecord) -> str:
    file = farm.run(record.id).prompt
    try:
        return read_own(file).decode()
    except UnicodeDecodeError:
        raise damaged(file, "It is not UTF-8.") from None
    except FileNotFoundError:
        raise AgentFarmError(
            f"The prompt of {record.id} was never written",
            why=f"Its spawn was interrupted; its work is in {record.worktree}.",
            hint=f"af diff {record.id}",
        ) from None
