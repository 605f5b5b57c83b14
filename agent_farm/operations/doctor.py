"""`doctor`: every half-state explained. `doctor_fix` heals what can be healed, after the same checks."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.checks import (
    butler_files,
    damaged_registry,
    half_states,
    left_processes,
    leftovers,
    lost_parts,
    needed_tools,
    port_blocks,
)
from agent_farm.farm.checks.finding import Finding, Level
from agent_farm.farm.farm import Farm
from agent_farm.landing import cut_short_merges
from agent_farm.operations.operation import Answer, Context, Operation, Request

Check = Callable[[Farm], Iterator[Finding]]


class Doctor(Request):
    pass


class Found(Answer):
    """`healed` is what was done about it, `error` why that failed; `remedy` is a command for a person.

    `heals`: `af doctor --fix` can do something about it.
    """

    level: Level
    what: str
    healed: str | None
    error: str | None
    remedy: str | None
    heals: bool

    @property
    def is_left(self) -> bool:
        return self.level == "problem" and not self.healed


class Examined(Answer):
    """`problems` counts those that are left."""

    findings: tuple[Found, ...]
    problems: int

    @property
    def exit_code(self) -> int:
        return 1 if self.problems else 0


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


def examine(farm: Farm, *, fix: bool = False) -> Iterator[Found]:
    """All findings, one by one; with `fix` each is healed before the next check looks."""
    for check in CHECKS:
        outcomes = [_heal(finding) if fix and finding.heal else _Outcome(finding) for finding in check(farm)]
        yield from map(_told, _looked_at_again(farm, check, outcomes))
        if check is damaged_registry.check_registry and not _is_readable(farm):
            return  # every check that follows reads it


def collect(parts: Sequence[Found]) -> Examined:
    return Examined(tuple(parts), sum(part.is_left for part in parts))


def _is_readable(farm: Farm) -> bool:
    try:
        farm.registry.read()
    except DamagedFile:
        return False
    return True


@dataclass(frozen=True, slots=True)
class _Outcome:
    """`healed` is what was done about it, None when nothing was or could be."""

    finding: Finding
    healed: str | None = None
    error: str | None = None


def _heal(finding: Finding) -> _Outcome:
    assert finding.heal is not None
    try:
        return _Outcome(finding, healed=finding.heal())
    except AgentFarmError as error:
        return _Outcome(replace(finding, remedy=error.hint), error=error.sentence)
    except OSError as error:
        return _Outcome(finding, error=str(error))


def _looked_at_again(farm: Farm, check: Check, outcomes: list[_Outcome]) -> list[_Outcome]:
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


def _told(outcome: _Outcome) -> Found:
    finding = outcome.finding
    return Found(
        level=finding.level,
        what=finding.what,
        healed=outcome.healed,
        error=outcome.error,
        remedy=finding.remedy,
        heals=finding.heal is not None,
    )


def _run(context: Context, request: Doctor) -> Iterator[Found]:
    return examine(context.farm)


OPERATION = Operation(
    "doctor",
    "Find and explain what is broken in the farm",
    Doctor,
    Examined,
    _run,
    collect,
    effect="reads",
    tolerant=True,
)
