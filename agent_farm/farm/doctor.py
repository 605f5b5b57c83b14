"""`af doctor`: every half-state explained, and healed with --fix."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks import builders, butlers, leftovers, merges, processes, registry, tools
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm

Check = Callable[[Farm], Iterator[Finding]]

# In this order: what an earlier one heals, a later one no longer finds.
CHECKS: tuple[Check, ...] = (
    tools.check_git,
    tools.check_settings,
    tools.check_tmux,
    tools.check_runtimes,
    tools.check_environment,
    butlers.check_butlers,
    merges.check_interrupted_merges,
    merges.check_trials,
    registry.check_registry,
    builders.check_interrupted_spawns,
    builders.check_interrupted_removals,
    builders.check_missing_worktrees,
    builders.check_unknown_worktrees,
    builders.check_unknown_sessions,
    processes.check_left_processes,
    builders.check_writes_outside,
    leftovers.check_registrations,
    leftovers.check_branches,
    leftovers.check_run_directories,
    leftovers.check_locks,
    leftovers.check_ports,
    leftovers.check_temporaries,
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
        for finding in check(farm):
            outcome = _treated(finding) if fix and finding.heal else Outcome(finding)
            yield outcome
            if check is registry.check_registry and not outcome.healed:
                return  # every check that follows reads it


def _treated(finding: Finding) -> Outcome:
    assert finding.heal is not None
    try:
        return Outcome(finding, healed=finding.heal())
    except (AgentFarmError, OSError) as error:
        return Outcome(finding, error=str(error))
