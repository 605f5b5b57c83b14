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


class _ShowByDefault(click.Group):
    """`af sessions ID --json` is `af sessions show ID --json`."""

    def parse_args(self, ctx: click.Context, args: list[str]) -> list[str]:
        if not args or (args[0] not in self.commands and args[0] not in ctx.help_option_names):
            args = ["show", *args]
        return super().parse_args(ctx, args)


@click.group(cls=_ShowByDefault)
def sessions() -> None:
    """Show, follow, stop and remove headless sessions.

    Without a command it is `af sessions show`.

    \b
      af sessions                     the newest ones
      af sessions 3f2a                one of them whole
      af sessions --follow 3f2a       what it does, as it does it
      af sessions stop 3f2a           end it now
    """


@sessions.command()
@click.argument("id", required=False)
@click.option(
    "--state", "states", multiple=True, metavar="STATE", help="Only in this state; may be repeated."
)
@click.option("--source", metavar="SOURCE", help="Only from this trigger source, as in schedule:daily.")
@click.option("--butler", metavar="NAME", help="Only of this butler.")
@click.option("--since", metavar="AGE", help="Only younger than this, as in 30m, 12h or 7d.")
@click.option("--limit", type=click.IntRange(min=0), default=20, show_default=True, help="0 shows all.")
@click.option("--follow", "-f", is_flag=True, help="Show what session ID does until it ends, as af run does.")
@json_option
def show(
    id: str | None,
    states: tuple[str, ...],
    source: str | None,
    butler: str | None,
    since: str | None,
    limit: int,
    follow: bool,
    as_json: bool,
) -> int:
    """Show the headless sessions, the newest first, or session ID whole.

    States: queued, running, completed, failed, cancelled, interrupted (its process died).
    """
    from agent_farm.errors import UsageError
    from agent_farm.sessions.stores import open_sessions

    log = open_sessions(current_farm(tolerant=True).root)
    if follow:
        from agent_farm.cli.following import follow_session

        if id is None:
            raise UsageError("--follow needs the id of a session", hint="af sessions --state running")
        return follow_session(log, id, as_json=as_json)
    if id is not None:
        record = log.get(id)
        answer_json({"session": record}) if as_json else _show(record)
        return 0
    after = None if since is None else time.time() - seconds_of(since, "--since")
    found = log.find(butler=butler, states=states, source=source, since=after, limit=limit)
    if as_json:
        answer_json({"sessions": found})
        return 0
    if not found:
        narrate("No sessions.")
        narrate_hint('af run "…"')
    for record in found:
        answer(_line(record, terminal_width()))
    return 0


@sessions.command()
@click.argument("ids", metavar="ID...", nargs=-1, required=True)
@json_option
def stop(ids: tuple[str, ...], as_json: bool) -> int:
    """End sessions now, waiting or running.

    Every process that they started ends with them; their records say cancelled.
    """
    from agent_farm.cli.output import show_error
    from agent_farm.errors import AgentFarmError
    from agent_farm.server.client import stop_session
    from agent_farm.sessions.stores import open_sessions

    root = current_farm().root
    log = open_sessions(root)
    stopped, failed = [], []
    for id in dict.fromkeys(ids):
        try:
            session = log.load(id)
            record = stop_session(root, session.butler, session.id, "af sessions stop")
        except AgentFarmError as error:
            failed.append(error)
            if not as_json:
                show_error(error, as_json=False)
            continue
        stopped.append({key: record[key] for key in ("id", "state", "error")})
        if not as_json:
            answer(f"{record['id']} {record['state']}")
    if as_json:
        refused = [{"what": error.what, "why": error.why, "hint": error.hint} for error in failed]
        answer_json({"stopped": stopped, "failed": refused})
    return failed[0].exit_code if failed else 0


@sessions.command()
@click.option("--older-than", metavar="AGE", help="Those that ended longer ago than this, as in 30d.")
@click.option("--keep", type=click.IntRange(min=0), metavar="N", help="All but the newest N.")
@click.option("--butler", metavar="NAME", help="Only of this butler.")
@click.option("--dry-run", is_flag=True, help="Say what would be removed, and remove nothing.")
@json_option
def prune(older_than: str | None, keep: int | None, butler: str | None, dry_run: bool, as_json: bool) -> None:
    """Delete old records for good.

    The conversations of those sessions, and what memory has of them, go as well. Without --older-than
    and --keep it goes by sessions.keep_days and sessions.keep_number, as the server does once a day.
    """
    from agent_farm.sessions.retention import Limits, prune_sessions
    from agent_farm.sessions.stores import open_sessions

    farm = current_farm()
    if older_than is None and keep is None:
        limits = Limits.of(farm.settings)
    else:
        limits = Limits(None if older_than is None else seconds_of(older_than, "--older-than"), keep)
    removed = prune_sessions(open_sessions(farm.root), limits, butler=butler, dry_run=dry_run)
    if as_json:
        answer_json({"removed": removed, "dry_run": dry_run})
    else:
        verb = "would be removed" if dry_run else "removed"
        answer(f"{len(removed)} session{'' if len(removed) == 1 else 's'} {verb}")


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
    for key in ("prompt", "output"):
        if record[key]:
            answer(f"\n{key}:\n{printable(record[key])}")
    calls = record["tool_calls"] or []
    if calls:
        answer("\ntool calls:")
    for call in calls:
        answer(f"  {call_line(call)}")


def call_line(call: Mapping[str, Any]) -> str:
    failed = "  failed" if call.get("is_error") else ""
    return f"{printable(call['name'])} {printable(str(call['input']))[:200]}{failed}"


def _when(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def seconds_of(age: str, option: str) -> float:
    from agent_farm.errors import UsageError

    units = {"s": 1, "m": 60, "h": 3600, "d": 86400}
    try:
        seconds = float(age[:-1]) * units[age[-1:]]
    except (ValueError, KeyError):
        seconds = -1.0
    if not 0 <= seconds < 1e12:
        raise UsageError(f"{option}: {age!r} is not an age", why="Write 30m, 12h or 7d.")
    return seconds
