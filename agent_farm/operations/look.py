"""`capture`, `logs`, `path`, `prompt`: a builder's screen, its events, its worktree and its prompt."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.events import Event, Said, load_events
from agent_farm.documents import load_if_whole
from agent_farm.farm.panes import require_pane
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.own_files import read_own
from agent_farm.tmux.screen import options_of


class Capture(Request):
    id: BuilderId
    history: Annotated[int, Meta(ge=0, description="Also print this many lines of scrollback")] = 0
    escapes: Annotated[bool, Meta(description="Keep colours")] = False


class Captured(Answer):
    id: str
    screen: str
    options: Annotated[
        dict[str, str],
        Meta(description="Options of the dialog on the screen: each key that answers it, with its meaning"),
    ]


@reads("Print what a builder's screen shows now", elsewhere="there")
def capture(context: Context, request: Capture) -> Captured:
    record = choose(context, request.id)
    server, pane = require_pane(record)
    screen = server.capture(pane.pane_id, history=request.history, escapes=request.escapes)
    return Captured(id=record.id, screen=screen, options=options_of(screen))


class Logs(Request):
    id: BuilderId
    limit: Annotated[int, Meta(ge=0, description="Number of events, the newest ones; 0: all")] = 100


class Logged(Answer):
    id: str
    events: Annotated[tuple[Event, ...], Meta(description="Oldest first; times are in seconds since 1970")]
    answer: Annotated[
        Said | None,
        Meta(description="The answer that ended its last turn; null if its runtime does not report it"),
    ] = None


@reads("Print what happened to a builder: events of its launcher and its runtime", elsewhere="there")
def logs(context: Context, request: Logs) -> Logged:
    record = choose(context, request.id)
    run = context.farm.run(record.id)
    events = load_events(run.events)
    return Logged(record.id, tuple(events[-request.limit :]), load_if_whole(run.answer, Said))


class OneBuilder(Request):
    id: BuilderId


class WorktreePath(Answer):
    id: str
    path: str


@reads("Print the absolute path of a builder's worktree")
def path(context: Context, request: OneBuilder) -> WorktreePath:
    record = choose(context, request.id)
    return WorktreePath(id=record.id, path=record.worktree)


class PromptShown(Answer):
    """`prompt` and `role` are null if it was started without one."""

    id: str
    prompt: str | None
    role: str | None


@reads("Show the prompt and the role that a builder was started with", elsewhere="there")
def prompt(context: Context, request: OneBuilder) -> PromptShown:
    record = choose(context, request.id)
    run = context.farm.run(record.id)
    return PromptShown(id=record.id, prompt=_text_of(run.prompt), role=_text_of(run.role))


def _text_of(file: Path) -> str | None:
    try:
        return read_own(file).decode("utf-8", "replace")
    except FileNotFoundError:
        return None
