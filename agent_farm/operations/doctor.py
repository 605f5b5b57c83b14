"""`doctor`: explain everything broken or half-done. `doctor_fix` also repairs what can be repaired."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

from msgspec.structs import replace

from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.checks import (
    damaged_registry,
    half_states,
    leftovers,
    lost_parts,
    needed_tools,
    port_blocks,
)
from agent_farm.farm.checks.finding import Finding, Level
from agent_farm.farm.farm import Farm
from agent_farm.landing import cut_short_merges
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Nothing

Check = Callable[[Farm], Iterator[Finding]]


def _check_placed(farm: Farm) -> Iterator[Finding]:
    if farm.paths.fleet.exists():
        from agent_farm.operations.fleet.half_placed import check_placed, check_slots  # few farms have one

        yield from check_placed(farm)
        yield from check_slots(farm)


class Found(Answer):
    """`healed` says what was done about it, `error` why that failed; `remedy` is a command for a person.

    `heals`: `af doctor --fix` can repair it.
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
    """`problems` is the number of problems left."""

    findings: tuple[Found, ...]
    problems: int

    @property
    def exit_code(self) -> int:
        return 1 if self.problems else 0


# The order matters: what an earlier check heals, a later one no longer finds.
CHECKS: tuple[Check, ...] = (
    needed_tools.check_git,
    needed_tools.check_settings,
    needed_tools.check_tmux,
    needed_tools.check_runtimes,
    needed_tools.check_environment,
    needed_tools.check_butlers,
    cut_short_merges.check_interrupted_merges,
    cut_short_merges.check_cut_short_landing,
    cut_short_merges.check_left_of_merges,
    damaged_registry.check_registry,
    cut_short_merges.check_interrupted_syncs,
    lost_parts.check_interrupted_spawns,
    lost_parts.check_interrupted_removals,
    _check_placed,
    lost_parts.check_missing_worktrees,
    lost_parts.check_worktrees,
    lost_parts.check_unknown_worktrees,
    lost_parts.check_unknown_sessions,
    leftovers.check_left_processes,
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


def _collect(parts: Sequence[Found]) -> Examined:
    return Examined(tuple(parts), sum(part.is_left for part in parts))


@in_parts("Find and explain what is broken in the farm", _collect, effect="reads", tolerant=True)
def doctor(context: Context, request: Nothing) -> Iterator[Found]:
    return _examine(context.farm, fix=False)


@in_parts(
    "Repair what is broken in the farm and can be repaired; nothing that a person made is removed",
    _collect,
    effect="changes",
    tolerant=True,
    repeats=True,
)
def doctor_fix(context: Context, request: Nothing) -> Iterator[Found]:
    return _examine(context.farm, fix=True)


def _examine(farm: Farm, *, fix: bool) -> Iterator[Found]:
    """All findings, one by one; with `fix`, each is healed before the next check looks."""
    for check in CHECKS:
        found = [_heal(one) if fix and one.heal else _told(one) for one in check(farm)]
        if any(one.healed for one in found):  # healed only counts if the same check no longer finds it
            still = {one.what for one in check(farm)}
            found = [_not_healed(one) if one.healed and one.what in still else one for one in found]
        yield from found
        if check is damaged_registry.check_registry and not _is_readable(farm):
            return  # every later check reads the registry


def _told(finding: Finding, healed: str | None = None, error: str | None = None) -> Found:
    return Found(finding.level, finding.what, healed, error, finding.remedy, finding.heal is not None)


def _heal(finding: Finding) -> Found:
    assert finding.heal is not None
    try:
        return _told(finding, healed=finding.heal())
    except AgentFarmError as error:
        return replace(_told(finding, error=error.sentence), remedy=error.hint)
    except OSError as error:
        return _told(finding, error=str(error))


def _not_healed(found: Found) -> Found:
    return replace(found, healed=None, error="the repair had no effect")


def _is_readable(farm: Farm) -> bool:
    try:
        farm.registry.read()
    except DamagedFile:
        return False
    return True
