"""Builders as a table for a terminal: those that need a person first, the others by type."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from agent_farm.builders.config import BUILDER_TYPES
from agent_farm.builders.events import Usage
from agent_farm.builders.proof import Proof
from agent_farm.builders.status import CUT_SHORT, NEEDS_YOU, QUEUED_FOR_BUILD
from agent_farm.cli.cells import cells, counted, cut, fit, money
from agent_farm.cli.columns import GAP, lacking, make_room, room_for
from agent_farm.cli.output import STATE_STYLES, printable, style
from agent_farm.farm.git_state import GitState
from agent_farm.farm.listing import Builder
from agent_farm.operations.shown import GitShown

_TITLES = {"spec": "Specs", "task": "Tasks", "protocol": "Protocols", "shell": "Shells"}
_ORDER = (*NEEDS_YOU, "idle", "limited", "working", "preparing", "creating", "queued")
_GIT_WANTED = 16  # a long branch is cut to this width to leave room for the task
_INDENT = "  "


class _Row(NamedTuple):
    id: str
    state: str
    source: str
    age: str
    git: str
    runtime: str
    tokens: str
    branch: str
    task: str


_Widths = dict[str, int]
_HEADER = _Row(*_Row._fields)
_GIVE_WAY = ("branch", "tokens", "runtime", "source")


def render(builders: Sequence[Builder], *, width: int, now: float) -> str:
    rows = {builder.record.id: _row(builder, now) for builder in builders}
    widths = _widths([_HEADER, *rows.values()], width - len(_INDENT))
    lines = [style(_line(_HEADER, widths, width), "dim")]
    state_at = len(_INDENT) + widths["id"] + len(GAP)
    for title, group in _groups(builders):
        lines += ["", style(cut(f"{title} ({len(group)})", width), "bold")]
        for builder in sorted(group, key=_urgency):
            line = _line(rows[builder.record.id], widths, width)
            lines.append(_styled(line, builder.status.state, state_at))
            lines += [
                cut(f"{_INDENT * 2}{reason}", width) for reason in (*_reason(builder), *_doubt(builder))
            ]
    last = [*_old_bases(builders), *_late_machines(builders, now), _summary(builders)]
    return "\n".join([*lines, "", *(style(cut(line, width), "dim") for line in last)])


def _groups(builders: Sequence[Builder]) -> list[tuple[str, list[Builder]]]:
    """Builders that wait for a person are listed first, not under their types."""
    waiting = [builder for builder in builders if builder.status.state in NEEDS_YOU]
    others = [builder for builder in builders if builder.status.state not in NEEDS_YOU]
    by_type = [(_TITLES[type], [one for one in others if one.record.type == type]) for type in BUILDER_TYPES]
    return [(title, group) for title, group in [("Needs you", waiting), *by_type] if group]


def age(seconds: float) -> str:
    """A duration in at most three characters."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "m")):
        if seconds >= size:
            return f"{int(seconds // size)}{unit}"
    return f"{max(0, int(seconds))}s"


def _urgency(builder: Builder) -> tuple[int, str]:
    return _rank(builder.status.state), builder.record.created_at


def _row(builder: Builder, now: float) -> _Row:
    record, status = builder.record, builder.status
    build = f"({status.reason}) " if status.reason == QUEUED_FOR_BUILD else ""
    before = "cut short: " if status.cut_short and status.state not in NEEDS_YOU else build
    after = f" ({status.reason})" if status.state == "queued" and status.reason else ""
    return _Row(
        record.id,
        status.state,
        status.source,
        age(now - status.at) if status.at else "",
        _git(builder, now),
        _runtime(builder),
        usage_words(builder.usage),
        "" if record.id in record.branch else record.branch,
        printable(f"{before}{' '.join(record.title.split())}{after}"),
    )


def _runtime(builder: Builder) -> str:
    """The runtime, and the machine if it is not this one."""
    runtime = f"{builder.record.runtime} unlocked" if builder.record.unlocked else builder.record.runtime
    return f"{runtime} on {builder.host}" if builder.host else runtime


def _reason(builder: Builder) -> list[str]:
    """What a person is needed for, or until when the builder is limited, on a line of its own."""
    status = builder.status
    if status.state not in (*NEEDS_YOU, "limited") or not status.reason or status.reason == CUT_SHORT:
        return []
    return [printable(" ".join(status.reason.split()))]


def _styled(line: str, state: str, begin: int) -> str:
    """The line with its state in colour, if the state is inside the visible part."""
    end = begin + len(state)
    if line[begin:end] != state:
        return line
    return line[:begin] + style(state, STATE_STYLES.get(state)) + line[end:]


def _git(builder: Builder, now: float) -> str:
    state = builder.git
    if builder.status.state == "queued":
        return ""
    if state is None or state.problem:
        return state.problem if state and state.problem else "?"
    text = work_words(state, builder.proof)
    old = f"({age(now - state.at)})" if now - state.at > 5 else ""
    elsewhere = _elsewhere(builder.record.branch, state)
    if elsewhere and text.endswith("landed"):
        text += ","  # it has landed, but not on the branch that follows
    asked = builder.pull_request.told if builder.pull_request else ""
    partly = "sparse" if builder.record.sparse else ""
    return " ".join(part for part in (text, elsewhere, partly, asked, old) if part)


def work_words(git: GitState | GitShown, proof: Proof | None) -> str:
    """`+2 -1 ~3 ✓`: commits ahead and behind, changed files, and whether checks prove the work."""
    landed = bool(git.landed and git.has_commits)
    parts = (
        f"+{git.ahead}" if git.ahead else "",
        f"-{git.behind}" if git.behind else "",
        _unknown(git),
        "landed" if landed else "",
        f"~{git.dirty}" if git.dirty else "",
        f"?{git.untracked}" if git.untracked else "",
    )
    return " ".join(
        filter(None, (" ".join(filter(None, parts)) or "=", proof.mark if proof and not landed else ""))
    )


def _doubt(builder: Builder) -> list[str]:
    """What is wrong with its work, or needs a look, on one line."""
    proof = builder.proof
    if proof is None or proof.state in ("stale", "uncommitted", "empty"):
        return []
    told = [proof.reason] if proof.reason else []
    told += [proof.flags[0].told] if proof.flags else []
    more = f" (and {len(proof.flags) - 1} more)" if len(proof.flags) > 1 else ""
    return [printable("; ".join(told) + more)] if told else []


def _elsewhere(branch: str, state: GitState) -> str:
    """What is checked out, if it is not the builder's own branch."""
    if state.operation and state.branch != branch:
        return state.operation
    if state.branch is None:
        return "detached"
    return "" if state.branch == branch else f"on {printable(state.branch)}"


def _unknown(state: GitState | GitShown) -> str:
    """Says that the state is unknown, which is not the same as "no difference"."""
    if state.ahead is not None:
        return ""
    return f"? {state.missing} gone" if state.missing else "?"


def usage_words(usage: Usage | None) -> str:
    """Tokens read and written, and the cost if it is known: `41k/2k $0.13`."""
    if usage is None:
        return ""
    parts = [f"{_short(usage.input_tokens)}/{_short(usage.output_tokens)}"]
    return " ".join([*parts, money(usage.cost)] if usage.cost else parts)


def _short(count: int | None) -> str:
    if count is None:
        return "?"
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if count >= size:
            return f"{count / size:.0f}{unit}"
    return str(count)


def _widths(rows: list[_Row], width: int) -> _Widths:
    """Columns as wide as their content; while the task has no room, others give way one by one."""
    columns = zip(_Row._fields, zip(*rows, strict=True), strict=True)
    widths = {name: max(map(cells, set(column))) for name, column in columns if any(column[1:])}
    widths.setdefault("task", 0)
    make_room(widths, "task", width, _GIVE_WAY)
    if "git" in widths:
        spare = widths["git"] - lacking(widths, "task", width)
        widths["git"] = max(min(widths["git"], _GIT_WANTED), spare)
    widths["task"] = max(0, room_for(widths, "task", width))
    return widths


def _line(row: _Row, widths: _Widths, width: int) -> str:
    parts = [fit(getattr(row, name), size) for name, size in widths.items() if name != "task"]
    return cut(_INDENT + GAP.join([*parts, cut(row.task, widths["task"])]).rstrip(), width)


def _summary(builders: Sequence[Builder]) -> str:
    states = [builder.status.state for builder in builders]
    counts = [f"{states.count(state)} {state}" for state in dict.fromkeys(sorted(states, key=_rank))]
    return f"{counted(len(builders), 'builder')}: {', '.join(counts)}"


def _old_bases(builders: Sequence[Builder]) -> list[str]:
    """Builders whose base is older than what the remote has now."""
    states = {builder.record.base: builder.git for builder in builders if builder.git}
    return [
        f"{base} is {state.base_behind} behind {state.base_follows}"
        for base, state in sorted(states.items())
        if state.base_behind
    ]


def _late_machines(builders: Sequence[Builder], now: float) -> list[str]:
    """Machines that do not answer, and how old their builders' states are."""
    seen = {builder.host: builder.seen_at for builder in builders if builder.host and builder.seen_at}
    return [
        f"{host} has not answered; its builders are shown as of {age(now - at)} ago"
        for host, at in sorted(seen.items())
    ]


def _rank(state: str) -> int:
    return _ORDER.index(state) if state in _ORDER else len(_ORDER)
