"""Carries out a plan: makes the whole builder, or leaves no trace of it."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack, nullcontext
from functools import cache, partial
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, in_one_line
from agent_farm.farm.checkout_cost import Timed, measured, pool_directory, refill_later
from agent_farm.farm.farm import Farm
from agent_farm.farm.home import settle_home
from agent_farm.farm.preparation import hide_links
from agent_farm.farm.waiting import forget_order
from agent_farm.git.ignoring import keep_apart
from agent_farm.git.worktrees import BranchTaken, add_worktree
from agent_farm.operations.shown import BuilderShown, show_builder, show_started
from agent_farm.operations.spawn_plan import Plan
from agent_farm.operations.spawn_reservation import reserve, uninterrupted
from agent_farm.runtimes.cli import Start

if TYPE_CHECKING:
    from agent_farm.operations.spawn_several import Turn
    from agent_farm.pane.launchfile import Copy


def make_builder(
    farm: Farm,
    plan: Plan,
    waited: BuilderRecord | None = None,
    *,
    turn: Turn | None = None,
) -> BuilderShown:
    """Carry out what `preflight` found possible, or put it in the queue. A failure leaves nothing behind; a
    builder that has `waited` waits again. One of several is recorded in its `turn`.

    The answer is built here, because an interrupt before a user knows of the builder must undo it.
    """
    if turn is not None:
        farm = replace(farm, step=turn.step)
    keep_apart(farm.repository)
    with ExitStack() as stack:
        with turn or nullcontext():
            record, lock = reserve(farm, plan, stack, waited)
        if lock is None:
            return show_builder(farm, record.id)
        try:
            settle_home(farm.repository)  # the first spawn creates the directory that it writes to
            ready = cache(partial(_prepare, farm, plan, record))  # called while git checks out, or else below
            _make_worktree(farm, plan, record, lock, ready, alone=turn is None)
            _start(farm, plan, record, ready())
            record = farm.registry.put(record.with_state("running"))
            if waited:
                forget_order(farm, record.id)
            shown = show_started(farm, record)
        except BaseException as error:
            with uninterrupted():
                _undo(farm, record, error)
            raise
    refill_later(farm)
    return shown


def _make_worktree(
    farm: Farm, plan: Plan, record: BuilderRecord, lock: int, meanwhile: Callable[[], Start], *, alone: bool
) -> None:
    upstream = plan.start.upstream
    # With an upstream no slot is used: its branch would track nothing, and a failure would delete it, whoever
    # made it.
    if upstream or not _take_slot(farm, plan, record, lock):
        beside = Timed(meanwhile)
        usual = alone and not plan.order.sparse  # side by side, it would take longer
        with measured(farm, beside) if usual else nullcontext():
            add_worktree(
                farm.repository,
                record.worktree_path,
                record.branch,
                plan.start.tip,
                lock_path=farm.paths.worktree_lock,
                builder_lock_fd=lock,
                new_branch=record.new_branch,
                upstream=upstream.ref if upstream else None,
                sparse=record.sparse,
                meanwhile=beside,
                step=farm.step,
            )
    if plan.carry:
        from agent_farm.git.carrying import carry_changes

        carry_changes(farm.repository.persons_checkout(), farm.tree(record), sparse=bool(record.sparse))


def _take_slot(farm: Farm, plan: Plan, record: BuilderRecord, lock: int) -> bool:
    if not pool_directory(farm).is_dir():
        return False
    from agent_farm.farm.ready_worktrees import take_slot  # takes 4 ms, and few farms have a pool

    return take_slot(farm, record, plan.start.tip, plan.preparation.carried, lock)


def _prepare(farm: Farm, plan: Plan, record: BuilderRecord) -> Start:
    from agent_farm.farm.runtime_start import prepare_start  # loaded while git works, too

    return prepare_start(farm, record, plan.chosen, prompt=plan.work.prompt, role_text=plan.role_text)


def _start(farm: Farm, plan: Plan, record: BuilderRecord, start: Start) -> None:
    from agent_farm.farm.runtime_start import start_runtime

    hide_links(farm, plan.preparation)
    start_runtime(
        farm,
        record,
        plan.chosen,
        start,
        copies=[*_output(farm, plan, record), *plan.preparation.files(record.worktree_path)],
        setup=plan.preparation.setup,
    )


def _output(farm: Farm, plan: Plan, record: BuilderRecord) -> list[Copy]:
    if not plan.preparation.carried:
        return []
    from agent_farm.farm.carried_output import carried_files, fitting_output

    tree = farm.tree(record)
    return carried_files(farm, tree, fitting_output(tree, plan.preparation.carried))


def _undo(farm: Farm, record: BuilderRecord, error: BaseException) -> None:
    """The first error is the one to show; what could not be undone is added to it."""
    from agent_farm.farm.healing import remove_traces  # only failed spawns need it

    if isinstance(error, BranchTaken):
        record = replace(record, new_branch=False)  # so that the branch is not deleted
    try:
        kept = remove_traces(farm, record)
    except (AgentFarmError, OSError) as second:
        kept = [f"{record.id} could not be undone: {in_one_line(second)}; run af doctor --fix"]
    if kept and isinstance(error, AgentFarmError):
        error.evidence = (*error.evidence, *kept)
