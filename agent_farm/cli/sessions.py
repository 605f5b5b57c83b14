"""`af sessions`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click

from agent_farm.cli.options import current_farm, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable, style, terminal_width

STATE_STYLES = {
    "running": "green",
    "queued": "cyan",
    "failed": "red",
    "interrupted": "red",
    "cancelled": "yellow",
}


@click.command()
@click.argument("id", required=False)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only in this state; may be repeated."
)
@click.option("--source", metavar="SOURCE", help="Only from this trigger source, as in schedule:daily.")
@click.option("--butler", metavar="NAME", help="Only of this butler.")
@click.option("--since", metavar="AGE", help="Only younger than this, as in 30m, 12h or 7d.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="0 shows all.")
@json_option
def sessions(
    id: str | None,
    states: tuple[str, ...],
    source: str | None,
    butler: str | None,
    since: str | None,
    limit: int,
    as_json: bool,
) -> None:
    """Show the headless sessions, the newest first, or one of them whole.

    States: queued, running, completed, failed, cancelled, interrupted (its process died).
    """
    from agent_farm.butler.service import open_sessions

    log = open_sessions(current_farm(tolerant=True).root)
    if id is not None:
        record = log.get(id)
        answer_json({"session": record}) if as_json else _show(record)
        return
    after = None if since is None else time.time() - _seconds(since)
    found = log.find(butler=butler, states=states, source=source, since=after, limit=limit)
    if as_json:
        answer_json({"sessions": found})
        return
    if not found:
        narrate("No sessions.")
        narrate_hint('af run "…"')
    for record in found:
        answer(_line(record, terminal_width()))


def _line(record: Mapping[str, Any], width: int) -> str:
    state = style(f"{record['state']:<11}", STATE_STYLES.get(record["state"]))
    took = f"{record['duration']:.1f}s" if record["duration"] is not None else "-"
    head = f"{record['id'][:8]}  {_when(record['created_at'])}  "
    tail = f"  {took:>8}  {record['runtime']:<11}  {record['trigger_source']}  "
    prompt = printable(record["prompt"])
    return head + state + tail + prompt[: max(20, width - len(head) - len(tail) - 11)]


def _show(record: Mapping[str, Any]) -> None:
    shown = {
        key: value
        for key, value in record.items()
        if key not in ("prompt", "context", "output", "tool_calls")
    }
    for key, value in shown.items():
        if value is not None:
            text = _when(value) if key.endswith("_at") else printable(str(value))
            answer(f"{key:<15} {text}")
    for key in ("context", "prompt", "output"):
        if record[key]:
            answer(f"\n{key}:\n{printable(record[key])}")
    calls = record["tool_calls"] or []
    if calls:
        answer("\ntool calls:")
    for call in calls:
        failed = "  failed" if call.get("is_error") else ""
        answer(f"  {printable(call['name'])} {printable(str(call['input']))[:200]}{failed}")


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _seconds(age: str) -> float:
    from agent_farm.errors import UsageError

    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    try:
        return float(age[:-1]) * units[age[-1:]]
    except (ValueError, KeyError):
        raise UsageError(f"--since: {age!r} is not an age", why="Write 30m, 12h or 7d.") from None
