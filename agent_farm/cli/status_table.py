"""Builders as a table for a terminal: grouped by type, those that need a person first."""

from __future__ import annotations

from typing import NamedTuple

from agent_farm.builders.config import BUILDER_TYPES
from agent_farm.builders.events import Usage
from agent_farm.cli.cells import cells, cut, pad
from agent_farm.cli.output import STATE_STYLES, printable, style
from agent_farm.farm.git_state import GitState
from agent_farm.farm.listing import Builder

_TITLES = {"spec": "Specs", "task": "Tasks", "protocol": "Protocols", "shell": "Shells"}
_ORDER = ("waiting", "failed", "lost", "unknown", "idle", "working", "preparing", "creating")
_WIDE = 120
_TITLE_MINIMUM = 12
_GAP = "  "


class _Row(NamedTuple):
    id: str
    state: str
    age: str
    git: str
    runtime: str
    usage: str
    branch: str
    title: str
    style: str | None


_RUNTIME, _USAGE, _BRANCH, _TITLE = map(_Row._fields.index, ("runtime", "usage", "branch", "title"))


def render(builders: list[Builder], *, width: int, now: float) -> str:
    lines: list[str] = []
    rows = {builder.record.id: _row(builder, now) for builder in builders}
    widths = _widths(list(rows.values()), width)
    for type in BUILDER_TYPES:
        group = sorted((b for b in builders if b.record.type == type), key=_urgency)
        if group:
            lines += ["", style(f"{_TITLES[type]} ({len(group)})", "bold")]
            lines += [_line(rows[builder.record.id], widths) for builder in group]
    return "\n".join([*lines[1:], "", style(_summary(builders), "dim")])


def age(seconds: float) -> str:
    """A duration in at most three characters."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def _urgency(builder: Builder) -> tuple[int, str]:
    state = builder.status.state
    return (_ORDER.index(state) if state in _ORDER else len(_ORDER), builder.record.created_at)


def _row(builder: Builder, now: float) -> _Row:
    record, status = builder.record, builder.status
    reason = f"{status.reason}: " if status.reason and status.state not in ("working", "idle") else ""
    return _Row(
        record.id,
        f"{status.state}/{status.source}",
        age(now - status.at) if status.at else "",
        _git(builder, now),
        record.runtime,
        _usage(builder.usage),
        record.branch,
        printable(" ".join(f"{reason}{record.title}".split())),
        STATE_STYLES.get(status.state),
    )


def _git(builder: Builder, now: float) -> str:
    state = builder.git
    if state is None or state.problem:
        return state.problem if state and state.problem else "?"
    parts = [f"+{state.ahead}" if state.ahead else "", f"-{state.behind}" if state.behind else ""]
    parts += [_unknown(state), "landed" if state.landed and state.has_commits else ""]
    parts += [f"~{state.dirty}" if state.dirty else "", f"?{state.untracked}" if state.untracked else ""]
    text = " ".join(part for part in parts if part) or "="
    old = f"({age(now - state.at)})" if now - state.at > 5 else ""
    return " ".join(part for part in (text, _elsewhere(builder.record.branch, state), old) if part)


def _elsewhere(branch: str, state: GitState) -> str:
    """What is checked out, where that is not the builder's own branch."""
    if state.operation and state.branch != branch:
        return state.operation
    if state.branch is None:
        return "detached"
    return "" if state.branch == branch else f"on {printable(state.branch)}"


def _unknown(state: GitState) -> str:
    """Not known is not "no difference"."""
    if state.ahead is not None:
        return ""
    return f"? {state.missing} gone" if state.missing else "?"


def _usage(usage: Usage | None) -> str:
    """Tokens read and written, and the cost where it is known: `41k/2k $0.13`."""
    if usage is None:
        return ""
    parts = [f"{_short(usage.input_tokens)}/{_short(usage.output_tokens)}"]
    return " ".join([*parts, f"${usage.cost:.2f}"] if usage.cost and usage.cost >= 0.005 else parts)


def _short(count: int | None) -> str:
    if count is None:
        return "?"
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.0f}{unit}"
    return str(count)


def _widths(rows: list[_Row], width: int) -> list[int]:
    """Columns as wide as their content; a narrow terminal leaves out the branch, usage, then the runtime."""
    widths = [max(cells(row[column] or "") for row in rows) for column in range(_TITLE)]
    for column in (_BRANCH, _USAGE, _RUNTIME) if width < _WIDE else ():
        if sum(widths) + len(_GAP) * _TITLE + _TITLE_MINIMUM * 2 > width:
            widths[column] = 0
    used = sum(size + len(_GAP) for size in widths if size) + len(_GAP)
    return [*widths, max(_TITLE_MINIMUM, width - used)]


def _line(row: _Row, widths: list[int]) -> str:
    parts = []
    for column, size in enumerate(widths):
        if not size:
            continue
        text = cut(row[column] or "", size)
        part = text if column == _TITLE else pad(text, size)
        parts.append(style(part, row.style) if column == 1 else part)
    return (_GAP + _GAP.join(parts)).rstrip()


def _summary(builders: list[Builder]) -> str:
    states = [builder.status.state for builder in builders]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states, key=_rank))]
    noun = "builder" if len(builders) == 1 else "builders"
    return f"{len(builders)} {noun}: {', '.join(counts)}"


def _rank(state: str) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
