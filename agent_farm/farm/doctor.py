"""`af doctor`: every half-state explained, and healed with --fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace

from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.checks import (
    butler_files,
    cut_short_merges,
    damaged_registry,
    half_states,
    left_processes,
    leftovers,
    lost_parts,
    needed_tools,
    port_blocks,
)
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm

Check = Callable[[Farm], Iterator[Finding]]

# In this order: what an earlier one heals, a later one no longer finds.
CHECKS: tuple[Check, ...] = (
    needed_tools.check_git,
    needed_tools.check_settings,
    needed_tools.check_tmux,
    needed_tools.check_runtimes,
    needed_tools.check_environment,
    butler_files.check_butlers,
    cut_short_merges.check_interrupted_merges,
    cut_short_merges.check_left_of_merges,
    damaged_registry.check_registry,
    lost_parts.check_interrupted_spawns,
    lost_parts.check_interrupted_removals,
    lost_parts.check_missing_worktrees,
    lost_parts.check_worktrees,
    lost_parts.check_unknown_worktrees,
    lost_parts.check_unknown_sessions,
    left_processes.check_left_processes,
    lost_parts.check_writes_outside,
    leftovers.check_registrations,
    leftovers.check_branches,
    leftovers.check_run_directories,
    leftovers.check_locks,
    port_blocks.check_ports,
    leftovers.check_temporaries,
    half_states.check_secrets,
    half_states.check_pool,
    half_states.check_git_locks,
    half_states.check_database,
    leftovers.check_server,
    leftovers.check_trash,
)


@dataclass(frozen=True, slots=True)
class Outcome:
    """`healed` is what was done about it, None when nothing was or could be."""

    finding: Finding
    healed: str | None = None
    error: str | None = None


def examine(farm: Farm, *, fix: bool = False) -> Iterator[Outcome]:
    """All findings, one by one; with `fix` each is healed before the next check looks."""
    for check in CHECKS:
        outcomes = [_heal(finding) if fix and finding.heal else Outcome(finding) for finding in check(farm)]
        yield from _looked_at_again(farm, check, outcomes)
        if check is damaged_registry.check_registry and not _is_readable(farm):
            return  # every check that follows reads it


def _is_readable(farm: Farm) -> bool:
    try:
        farm.registry.read()
    except DamagedFile:
        return False
    return True


def _heal(finding: Finding) -> Outcome:
    assert finding.heal is not None
    try:
        return Outcome(finding, healed=finding.heal())
    except AgentFarmError as error:
        return Outcome(replace(finding, remedy=error.hint), error=error.sentence)
    except OSError as error:
        return Outcome(finding, error=str(error))


def _looked_at_again(farm: Farm, check: Check, outcomes: list[Outcome]) -> list[Outcome]:
    """Healed is only what the same check no longer finds."""
    if not any(outcome.healed for outcome in outcomes):
        return outcomes
    still = {finding.what for finding in check(farm)}
    return [
        replace(outcome, healed=None, error="it was tried, and is still so")
        if outcome.healed and outcome.finding.what in still
        else outcome
        for outcome in outcomes
    ]
