"""`af resume` and `af recover`: the same conversation goes on, under the same role."""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from msgspec.structs import replace

from agent_farm.builders.events import last_conversation, load_events
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.roles import load_role
from agent_farm.builders.status import ALIVE, Status
from agent_farm.consent import Ask
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.builder_server import builder_server
from agent_farm.farm.chosen_runtime import Chosen, choose_runtime
from agent_farm.farm.farm import Farm
from agent_farm.farm.limits import require_room
from agent_farm.farm.listing import read_status, read_statuses
from agent_farm.farm.locks import hold
from agent_farm.farm.panes import find_pane
from agent_farm.farm.runtime_start import Preparation, draw_run, start_runtime
from agent_farm.farm.start_consent import agree_to_start
from agent_farm.farm.stop import end_processes, program_in_shell


@dataclass(frozen=True, slots=True)
class Resumed:
    record: BuilderRecord
    continues: bool


def resume(
    farm: Farm, record: BuilderRecord, *, say: str | None = None, yes: bool = False, ask: Ask | None = None
) -> Resumed:
    """Start the builder's runtime again. `continues` tells whether a conversation went on.

    A conversation that goes on is told `say`, if that is given; a new one gets its prompt again.
    """
    with hold(farm, record.id) as record:
        _require_resumable(farm, record, read_status(farm, record))
        chosen = choose_runtime(farm, record.runtime, model=record.model, permissions=record.permissions)
        agree_to_start(farm, chosen, yes=yes, ask=ask)  # they may have changed since the spawn
        require_room(farm, farm.registry.read())
        conversation = _conversation(farm, record, chosen)
        end_processes(farm, record)
        started = replace(
            record,
            run=draw_run(),
            socket=farm.tmux.path(os.environ),
            conversation_id=conversation or chosen.adapter.new_conversation_id(),
            state="running",
            reason=None,
        )
        farm.registry.put(started)
        try:
            _start(farm, started, chosen, say, continues=conversation is not None)
        except BaseException:
            farm.registry.put(record)
            raise
        return Resumed(started, conversation is not None)


@dataclass(frozen=True, slots=True)
class Lost:
    """A builder that was neither stopped nor had ended, and whose session is gone."""

    record: BuilderRecord
    cut_short: bool


def lost_builders(farm: Farm) -> list[Lost]:
    records = farm.records()
    statuses = read_statuses(farm, records.values())
    return [
        Lost(record, statuses[record.id].cut_short)
        for record in records.values()
        if statuses[record.id].state == "lost"
    ]


def _require_resumable(farm: Farm, record: BuilderRecord, status: Status) -> None:
    if status.state in ALIVE:
        raise UsageError(f"{record.id} is running ({status.state})", hint=f"af attach {record.id}")
    if status.state == "unknown":
        raise AgentFarmError(f"tmux could not be asked about {record.id}", why=status.reason)
    if status.state == "creating":
        raise AgentFarmError(f"{record.id} is being created", hint="af status")
    if not record.worktree_path.is_dir():
        raise AgentFarmError(
            f"The worktree of {record.id} is gone", why=record.worktree, hint="af doctor --fix"
        )
    program = program_in_shell(find_pane(record).pane)
    if program:
        raise AgentFarmError(
            f"{program} runs in the shell of {record.id}",
            why="Resuming would end it.",
            hint=f"af attach {record.id}",
        )


def _conversation(farm: Farm, record: BuilderRecord, chosen: Chosen) -> str | None:
    return last_conversation(load_events(farm.run(record.id).events), chosen.adapter.cli.hooks.submitted)


def _prompt_again(record: BuilderRecord, file: Path) -> str:
    try:
        return file.read_text(encoding="utf-8")
    except FileNotFoundError:
        raise AgentFarmError(
            f"The prompt of {record.id} was never written",
            why=f"Its spawn was cut short; what it holds is in {record.worktree}.",
            hint=f"af diff {record.id}",
        ) from None


def _start(farm: Farm, record: BuilderRecord, chosen: Chosen, say: str | None, *, continues: bool) -> None:
    run = farm.run(record.id)
    if continues or record.prompt_file is None:
        prompt = say if continues else None
    else:
        prompt = _prompt_again(record, run.prompt)
    start_runtime(
        farm,
        record,
        chosen,
        prompt=prompt,
        role_text=load_role(run.role) if record.role else None,
        mcp_server=builder_server(farm, record.id),
        preparation=Preparation(setup=farm.settings.text("worktree.setup") if not continues else None),
        resume=continues,
    )
