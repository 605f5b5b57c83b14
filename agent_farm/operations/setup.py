"""`setup`: prepare a builder's worktree again, as at its spawn."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.builds import before_setup
from agent_farm.farm.carried_output import carried_files, fitting_output
from agent_farm.farm.chosen_runtime import agree_to_start, choose_runtime, include_requests
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.farm.preparation import hide_links, preparation_of
from agent_farm.farm.runtime_start import builder_environment
from agent_farm.launch import as_command
from agent_farm.operations.builders import Yes, choose
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.pane.copies import copy_files
from agent_farm.printable import printable

_LAST_LINES = 40


class Setup(Request):
    id: Annotated[str, Meta(description="Id of a builder, or an unambiguous prefix")]
    yes: Yes = False


class SetUp(Answer):
    """`notes` names files that could not be copied or linked."""

    id: str
    command: Annotated[
        str | None, Meta(description="The command that ran in the worktree; null if none is set")
    ]
    notes: tuple[str, ...]
    output: Annotated[str, Meta(description="The last lines it printed")]


@acts(
    "Prepare a builder's worktree again, as at its spawn",
    repeats=True,
    pool="start",
    details="Creates missing copies, carried output and links, fills submodules and runs worktree.setup,"
    " even while the builder is working. Existing files stay as they are.",
    elsewhere="there",
)
def setup(context: Context, request: Setup) -> SetUp:
    farm, record = context.farm, choose(context, request.id)
    record.require_begun()
    farm.tree(record)  # checks that it exists and is the builder's
    with _alone(farm, record):
        return _set_up(context, request, record)


@contextmanager
def _alone(farm: Farm, record: BuilderRecord) -> Iterator[None]:
    """One at a time: two would write the same files."""
    lock = farm.paths.locks / f"setup-{record.id}.lock"
    busy = LockTaken(f"{record.id} is already being set up", hint=as_command("af", "logs", record.id))
    if read_status(farm, record).state == "preparing":
        raise busy
    with file_lock(lock, wait=0, busy=busy):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _set_up(context: Context, request: Setup, record: BuilderRecord) -> SetUp:
    farm, tree = context.farm, context.farm.tree(record)
    chosen = choose_runtime(farm, record.runtime, model=record.model, permissions=None)
    include = include_requests(farm)
    agree_to_start(farm, chosen, more=include, yes=request.yes, ask=context.ask)
    found = preparation_of(farm, include)
    hide_links(farm, found)
    carried = carried_files(farm, tree, fitting_output(tree, found.carried))
    files = [*carried, *found.files(tree.path)]
    notes = tuple(copy_files(files, tree.path, step=farm.step, only_missing=True))
    env = builder_environment(farm, record, chosen)
    output = _carried_out(context, farm, record, found.setup, env) if found.setup else ""
    return SetUp(record.id, found.setup, notes, output)


def _carried_out(context: Context, farm: Farm, record: BuilderRecord, setup: str, env: dict[str, str]) -> str:
    import asyncio  # loaded only here, with everything that drives a process

    from agent_farm.runtimes.process import Command, run_guarded

    last = deque[str](maxlen=_LAST_LINES)

    def hear(line: str) -> None:
        last.append(printable(line.rstrip("\r\n")))
        context.tell(last[-1])

    argv = (*before_setup(farm, record), "/bin/sh", "-c", 'exec 2>&1; exec /bin/sh -c "$1"', "sh", setup)
    ended = asyncio.run(run_guarded(Command(argv, record.worktree_path, env), hear))
    if ended.exit_code != 0:
        how = f"was ended by {ended.signal}" if ended.signal else f"exited {ended.exit_code}"
        raise AgentFarmError(f"The setup of {record.id} {how}", why=ended.cannot_start, evidence=list(last))
    return "\n".join(last)
