"""Flags: what a person should look at before work lands, found in the diff alone; nothing is run.

Green checks say that what is checked is right; flags say where the checking itself may have been changed.
"""

from __future__ import annotations

from agent_farm.builders.proof import Flag
from agent_farm.landing.flags.of_checks import changed_checks, forced_exits, narrowed_checks, only_checks
from agent_farm.landing.flags.of_files import (
    knowing_code,
    made_files,
    outside_files,
    secrets,
    unreadable_files,
)
from agent_farm.landing.flags.of_tests import gone_tests, skipped_tests, weakened_tests
from agent_farm.landing.flags.parsed_diff import parse_diff
from agent_farm.landing.flags.rule import Rule, TaskScope

__all__ = ["RULES", "TaskScope", "flags_of"]

MOST = 40
RULES: tuple[Rule, ...] = (
    only_checks,
    unreadable_files,
    forced_exits,
    gone_tests,
    skipped_tests,
    narrowed_checks,
    weakened_tests,
    secrets,
    outside_files,
    changed_checks,
    knowing_code,
    made_files,
)


def flags_of(diff: str, asked: TaskScope) -> tuple[Flag, ...]:
    """The flags of a diff as git prints it, in the order of the rules."""
    files = parse_diff(diff)
    return tuple(dict.fromkeys(flag for rule in RULES for flag in rule(files, asked)))[:MOST]
