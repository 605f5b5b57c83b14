"""All panes of all builders, from one call of tmux."""

from __future__ import annotations

import re
from collections.abc import Mapping

from msgspec import Struct, field
from msgspec.structs import replace

from agent_farm.tmux.tmux_process import TmuxAnswer

# Printable, because versions of tmux print control characters differently.
SEPARATOR = "␞"
_FIELDS = (
    "#{session_id}", "#{pane_id}", "#{pane_pid}", "#{pane_dead}", "#{session_attached}",
    "#{window_activity}", "#{session_windows}", "#{window_panes}", "#{pane_start_command}",
    "#{pane_current_command}", "#{session_name}",
)  # fmt: skip
LIST_PANES = (
    "list-panes", "-a",
    "-f", "#{m:*launcher.py* af-* *,#{pane_start_command}}",
    "-F", SEPARATOR.join(_FIELDS),
)  # fmt: skip

# The launcher's argv stays with the pane, whatever the user's hooks rename.
_STARTED_BY_US = re.compile(r'[/\\]launcher\.py"? (af-[A-Za-z0-9_-]+) [0-9a-f]+$')


class PaneFacts(Struct, frozen=True):
    """`alone`: its session has no other pane."""

    session_id: str
    session_name: str
    pane_id: str
    pid: int
    dead: bool
    attached: int
    activity: float
    command: str
    alone: bool


class Snapshot(Struct, frozen=True):
    """`panes` by the name that a builder's session was given; `known` is False if tmux could not be asked."""

    known: bool
    panes: Mapping[str, PaneFacts] = field(default_factory=dict)
    reason: str | None = None


def read_snapshot(answer: TmuxAnswer) -> Snapshot:
    if answer.nothing_there:
        return Snapshot(known=True)
    if answer.code:
        return Snapshot(known=False, reason=answer.err or f"tmux ended with {answer.code}")
    panes: dict[str, PaneFacts] = {}
    for line in answer.out.split("\n"):
        found = _read_line(line)
        if found:
            name, facts = found
            panes[name] = _chosen(name, panes[name], facts) if name in panes else facts
    return Snapshot(known=True, panes=panes)


def _read_line(line: str) -> tuple[str, PaneFacts] | None:
    parts = line.split(SEPARATOR, len(_FIELDS) - 1)
    if len(parts) != len(_FIELDS):
        return None
    ours = _STARTED_BY_US.search(parts[8])
    if not ours:
        return None
    return ours[1], PaneFacts(
        session_id=parts[0],
        session_name=parts[10],
        pane_id=parts[1],
        pid=int(parts[2] or 0),
        dead=parts[3] == "1",
        attached=int(parts[4] or 0),
        activity=float(parts[5] or 0),
        command=parts[9],
        alone=(parts[6], parts[7]) == ("1", "1"),
    )


def _chosen(name: str, one: PaneFacts, other: PaneFacts) -> PaneFacts:
    """One of two: the same pane in two grouped sessions, or two panes of a builder that was started twice."""
    if one.pane_id == other.pane_id:
        attached = one.attached + other.attached
        return replace(other if other.session_name == name else one, attached=attached)
    return max(one, other, key=lambda pane: (not pane.dead, int(pane.pane_id.lstrip("%"))))
