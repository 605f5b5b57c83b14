"""`af status`."""

from __future__ import annotations

import sys
import time
from collections.abc import Sequence

import click

from agent_farm.builders.status import NEEDS_YOU
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.output import (
    answer,
    narrate,
    narrate_hint,
    printable,
    terminal_height,
    terminal_width,
)
from agent_farm.cli.status_table import render
from agent_farm.errors import UsageError
from agent_farm.farm.listing import Builder

_WATCH_SECONDS = 1.0
_SHORT = ("working", "queued", "idle")
# The alternate screen, which `less` and `top` use too, so that the previous contents come back.
_ENTER, _LEAVE = "\x1b[?1049h\x1b[?25l", "\x1b[?25h\x1b[?1049l"
_HOME, _ERASE_LINE, _ERASE_BELOW = "\x1b[H", "\x1b[K", "\x1b[J"


EPILOG = """\b
States:  creating preparing working idle   at work, or its turn ended
         waiting                           needs you; the line below says why
         interrupted                       back after its turn was cut short
         limited                           at a usage limit; below, until when
         queued                            waits for room, or for other work
         exited failed stopped lost        finished
         unknown                           tmux or its machine says nothing
Sources: hook launcher process screen
Git:     +ahead -behind of the base, ~changed ?untracked files, = nothing
         landed: all its commits are on the base or a remote, also squashed
         on BRANCH, detached, rebase: what is checked out, if not its own
         ✓ proven by checks, ! flagged: they passed, but look at the diff
         (✓) (!) before it or its target moved, ✗ red; af check shows more
         PR #12 open, merged, closed: as of the last look at the forge
         (af pr --refresh, or an open board or page)
         sparse: only some directories are checked out
         no tree, not ours: git is not asked there; af diff explains
Tokens:  41k/2k $0.13   read/written and the cost, of the whole conversation
A narrow terminal leaves columns out; --json has everything.
"""


def _show(builders: Sequence[Builder]) -> None:
    if not builders:
        narrate("No builders.")
        narrate_hint('af spawn "…"')
        return
    answer(_table(builders))
    for builder in builders:
        if builder.renamed_from:
            renamed = f"{builder.renamed_from} is {builder.record.branch} now; its record follows."
            narrate(printable(f"{builder.record.id}: {renamed}"))
    _hint(builders)


def _hint(builders: Sequence[Builder]) -> None:
    """How to continue builders that do nothing by themselves."""
    states = [builder.status.state for builder in builders]
    if "lost" in states:
        narrate_hint("af recover")
    elif "interrupted" in states:
        ids = [one.record.id for one in builders if one.status.state == "interrupted"]
        narrate_hint(f'af send {" ".join(ids)} "Go on"')


def _table(builders: Sequence[Builder]) -> str:
    return render(builders, width=terminal_width(), now=time.time())


def _watch(typed: Typed) -> int | None:
    """Shows the status again every second, until Ctrl-C."""
    if not typed.values["watch"]:
        return None
    if typed.as_json:
        raise UsageError("Flags are mutually exclusive: --watch, --json", hint="af status --help")
    if not sys.stdout.isatty():
        while True:
            answer(_picture(typed) + "\n")
            time.sleep(_WATCH_SECONDS)
    answer(_ENTER, end="")
    try:
        while True:
            lines = _fitting(_picture(typed).split("\n"), terminal_height())
            # drawn over the previous picture, to avoid flicker
            answer(_HOME + f"{_ERASE_LINE}\n".join(lines) + _ERASE_LINE + _ERASE_BELOW, end="")
            time.sleep(_WATCH_SECONDS)
    finally:
        answer(_LEAVE, end="")


def _picture(typed: Typed) -> str:
    builders = _found(typed)
    return _table(builders) if builders else "No builders."


def _found(typed: Typed) -> list[Builder]:
    parts = typed.operation.parts(typed.context, typed.request)
    return [builder for part in parts if isinstance(part, tuple) for builder in part]


def _fitting(lines: list[str], height: int) -> list[str]:
    """The first lines, and the summary, which is the last line."""
    if len(lines) <= height:
        return lines
    hidden = len(lines) - height + 1
    return [*lines[: height - 2], f"  … {hidden} more lines; af status shows all", lines[-1]]


def _before(typed: Typed) -> int | None:
    if typed.values["short"]:
        return _say_in_short(typed)
    return _watch(typed)


def _say_in_short(typed: Typed) -> int:
    """One short text for a shell prompt; empty without builders."""
    if typed.as_json or typed.values["watch"]:
        raise UsageError("--short goes alone", hint="af status --help")
    states = [builder.status.state for builder in _found(typed)]
    needing = sum(state in NEEDS_YOU for state in states)
    others = (state for state in _SHORT if state in states)
    words = [f"{needing} need{'s' if needing == 1 else ''} you"] if needing else []
    words += [f"{states.count(state)} {state}" for state in others]
    if words:
        answer(" · ".join(words))
    return 0


status = command_of(
    Way("status", _show, before=_before),
    also=[
        click.Option(["--watch", "-w"], is_flag=True, help="Refresh every second until Ctrl-C."),
        click.Option(["--short"], is_flag=True, help="One line for a prompt: 2 need you · 3 working."),
    ],
    epilog=EPILOG,
)
