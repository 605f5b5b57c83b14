"""`af sessions`."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import click
from msgspec.structs import asdict

from agent_farm.cli.cells import counted
from agent_farm.cli.columns import table
from agent_farm.cli.completing import complete_sessions
from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.durations import age_option
from agent_farm.cli.family import Family
from agent_farm.cli.output import (
    answer,
    answer_json,
    narrate,
    narrate_hint,
    printable,
    show_error,
    style,
    terminal_width,
)
from agent_farm.cli.run import show_result
from agent_farm.errors import UsageError
from agent_farm.operations.operation import document
from agent_farm.operations.sessions import (
    FoundSession,
    FoundSessions,
    PrunedSessions,
    SessionsStopped,
    log_of,
)
from agent_farm.operations.trigger import Triggered
from agent_farm.server.launching import ensure_server
from agent_farm.sessions.session import Session

STATE_STYLES = {
    "running": "green",
    "queued": "cyan",
    "failed": "red",
    "interrupted": "red",
    "cancelled": "yellow",
}
LOOK_SECONDS = 0.3
_GIVE_WAY = (5, 4, 3)  # who asked, the runtime, the duration
_SHOWN_OTHERWISE = ("prompt", "context", "output", "tool_calls", "home")


def _listing(values: dict[str, Any]) -> dict[str, Any]:
    return {"since": None if values["since"] is None else time.time() - values["since"]}


def _require_an_id(typed: Typed) -> None:
    if typed.values["follow"]:
        raise UsageError("--follow needs the id of a session", hint="af sessions --state running")


def _show_all(found: FoundSessions) -> None:
    if not found.sessions:
        narrate("No sessions.")
        narrate_hint('af run "…"')
    lines = table([_row(one) for one in found.sessions], terminal_width(), _GIVE_WAY)
    for one, line in zip(found.sessions, lines, strict=True):
        answer(line.replace(one.state, style(one.state, STATE_STYLES.get(one.state)), 1))


def _row(one: Session) -> tuple[str, ...]:
    took = f"{one.duration:.1f}s" if one.duration is not None else "-"
    prompt = printable(" ".join(one.prompt.split()))
    return one.id[:8], when(one.created_at), one.state, f"{took:>6}", one.runtime, one.trigger_source, prompt


def _show_one(found: FoundSession) -> None:
    one = found.session
    first = {"id": one.id, "butler": one.butler, "state": one.state}
    for name, value in {**first, **asdict(one)}.items():
        if value is not None and name not in _SHOWN_OTHERWISE and (value or name != "for_home"):
            answer(f"{name:<15} {when(value) if name.endswith('_at') else printable(str(value))}")
    for name in ("prompt", "output"):
        if text := getattr(one, name):
            answer(f"\n{name}:\n{printable(text)}")
    if isinstance(one.tool_calls, list) and one.tool_calls:
        answer("\ntool calls:")
        for call in one.tool_calls:
            answer(f"  {_call_line(call)}")


def _call_line(call: Mapping[str, Any]) -> str:
    failed = "  failed" if call.get("is_error") else ""
    return f"{printable(call['name'])} {printable(str(call['input']))[:200]}{failed}"


def _follow(typed: Typed) -> int | None:
    """Like `af run`, for a session that somebody else started; Ctrl-C ends the following, not the session."""
    if not typed.values["follow"]:
        return None
    ended = _followed(typed)
    found = Triggered(ended.id, ended.result)
    if typed.as_json:
        answer_json(document(found))
    elif found.result is not None:
        show_result(found.result)
    return found.exit_code


def _followed(typed: Typed) -> Session:
    log, state, told, said = log_of(typed.context), "", 0, ""
    id = typed.request.session_id
    found = log.load(id)
    if found.host is not None and found.ended_at is None:  # without a server there are no further events
        ensure_server(typed.context.farm.root)
    while True:
        session = log.load(id)
        id = session.id
        if session.state != state:
            state = session.state
            narrate(f"session {id} {state}")
        calls = session.tool_calls if isinstance(session.tool_calls, list) else []
        for call in calls[told:]:  # a call is shown when it is made, not when it is answered
            narrate(f"  {_call_line(call)}")
        told = max(told, len(calls))
        if session.ended_at is not None:
            return session
        if session.output and session.output != said:
            said = session.output
            narrate(printable(said))
        time.sleep(LOOK_SECONDS)


def _show_stopped(found: SessionsStopped) -> None:
    for one in found.stopped:
        answer(f"{one.id} {one.state}")
    for failure in found.failed:
        show_error(failure.error, as_json=False)


def _show_pruned(found: PrunedSessions) -> None:
    verb = "would be removed" if found.dry_run else "removed"
    answer(f"{counted(len(found.removed), 'session')} {verb}")


def when(at: float | None) -> str:
    return "-" if at is None else time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


sessions = Family(
    "sessions",
    default="show",
    help="""Show, follow, stop and remove headless sessions.

    Without a command it is `af sessions show`.

    \b
      af sessions                     the newest ones
      af sessions 3f2a                one of them in full
      af sessions --follow 3f2a       watch it live
      af sessions stop 3f2a           end it now
    """,
    commands=[
        command_of(
            Way("sessions_list", _show_all, build=_listing, before=_require_an_id),
            name="show",
            help="""List headless sessions, newest first, or show session ID in full.

            A session is interrupted when the server that ran it died.
            """,
            others={"session_id": Way("sessions_get", _show_one, before=_follow)},
            params={"since": age_option("--since", "Only younger than this, as in 30m, 12h or 7d.")},
            metavars={"source": "SOURCE"},
            also=[
                click.Argument(
                    ["session_id"], metavar="[ID]", required=False, shell_complete=complete_sessions
                ),
                click.Option(
                    ["--follow", "-f"],
                    is_flag=True,
                    help="Show what session ID does until it ends, as af run does.",
                ),
            ],
        ),
        command_of(
            Way("sessions_stop", _show_stopped),
            metavars={"session_ids": "ID"},
            complete={"session_ids": complete_sessions},
        ),
        command_of(
            Way("sessions_prune", _show_pruned),
            params={
                "older_than": age_option("--older-than", "Those that ended longer ago than this, as in 30d.")
            },
        ),
    ],
)
