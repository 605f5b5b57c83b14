"""`af init`, `af doctor`, `af pool`: setting up a farm and keeping it in order."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import click

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.options import current_directory
from agent_farm.cli.output import answer, folded, narrate, narrate_hint, printable, style
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.launch import as_command
from agent_farm.operations.doctor import Examined, Found
from agent_farm.operations.init import Written
from agent_farm.operations.notify import TargetTold
from agent_farm.operations.pool import PoolStatus

_MARKS = {"ok": ("ok", "green"), "note": ("note", "yellow"), "problem": ("problem", "red")}


def _show_written(found: Written) -> None:
    _show_files(found)
    _show_codevs(found)
    _show_ignore_lines(found)
    if found.created and not found.has_skill:
        narrate("To teach an AI session to drive the farm: af init --skill")
    if found.hint:
        narrate_hint(found.hint)


def _show_codevs(found: Written) -> None:
    for one in found.translated:
        became = ", ".join(f"{name} = {json.dumps(value)}" for name, value in one.settings.items())
        answer(printable(f"translated {one.key}: {became}"))
    for left in found.not_translated:
        answer(printable(f"not translated {left.key}: {left.why}"))
    if found.checks:
        narrate("codev's protocols run these checks. To have af run one on what builders land:")
        for name, command in found.checks.items():
            narrate(printable(f"  {as_command('af', 'config', 'set', f'check.{name}.command', command)}"))


def _show_files(found: Written) -> None:
    if not found.created and (found.translated or found.not_translated):
        return
    if not found.created:
        answer(f"Nothing to do: all {len(found.kept)} files exist.")
        return
    for name in found.created:
        answer(f"created {name}")
    if found.kept:
        narrate(f"Kept {len(found.kept)} existing files.")


def _show_ignore_lines(found: Written) -> None:
    if not found.ignore_lines:
        return
    narrate(
        "These tools would also search builders' worktrees. To keep them out, add this line to each file:"
    )
    tools: dict[tuple[str, str], list[str]] = {}
    for item in found.ignore_lines:
        tools.setdefault((item.file, item.line), []).append(item.tool)
    for (file, line), names in tools.items():
        narrate(f"  {printable(file)}: {line}  ({', '.join(names)})")


init = command_of(Way("init", _show_written))


def _show_told(one: TargetTold) -> None:
    answer(printable(f"{one.target}: {one.problem or 'sent'}"))


notify = command_of(
    Way("notify", _show_told), params={"text": click.Argument(["text"], metavar="[TEXT]", required=False)}
)


def _open(typed: Mapping[str, Any]) -> Farm:
    """Opens the farm even if its settings are wrong: that is among the findings."""
    return open_farm(
        current_directory(), lambda text: narrate(printable(text)), was_moved=bool(typed["moved"])
    )


def _show_finding(found: Found) -> None:
    _say(*_MARKS[found.level], found.what)
    if found.healed:
        _say("healed", "green", found.healed)
    elif found.error:
        _say("failed", "red", found.error)
    if found.remedy and not found.healed and found.level != "ok":
        narrate_hint(printable(found.remedy))


def _say(mark: str, colour: str, text: str) -> None:
    head = mark.ljust(8)
    told = folded(f"{head}{printable(text)}", indent=" " * len(head))
    answer(style(head, colour) + told.removeprefix(mark).removeprefix(head[len(mark) :]))


def _conclude(found: Examined) -> None:
    if any(one.is_left and one.heals for one in found.findings):
        narrate_hint("af doctor --fix")


doctor = command_of(
    Way("doctor", _show_finding, _conclude, open=_open),
    others={"fix": Way("doctor_fix", _show_finding, open=_open)},
    also=[
        click.Option(
            ["--fix"],
            is_flag=True,
            help="Repair what can be repaired; nothing that a person made is removed.",
        ),
        click.Option(
            ["--moved"],
            is_flag=True,
            help="Take over a farm that was moved here for good, if its old place cannot be seen from here.",
        ),
    ],
    epilog="Exit code 1 if a problem is left. Every command adapts to a farm that was moved, renamed or"
    " copied; --moved is only needed where its old place cannot be seen, as in a container.",
)


def _show_pool(found: PoolStatus) -> None:
    answer(f"{found.ready} ready, {found.wanted} wanted: {printable(found.reason)}")


pool = Family(
    "pool",
    help="""Keep worktrees ready for the next spawns.

    A spawn takes a ready worktree instead of checking out all files, brings it to its base, and has the pool
    refilled in the background. Two are kept where a checkout takes more than 0.3 s, unless [pool] size in
    agent-farm.toml says how many, or [pool] auto = false. Each takes the disk space of one checkout.
    """,
    commands=[
        command_of(Way("pool_status", _show_pool), name="status"),
        command_of(Way("pool_fill", lambda found: answer(f"{found.ready} ready")), name="fill"),
        command_of(Way("pool_drain", lambda found: answer(f"{found.removed} removed")), name="drain"),
    ],
)
