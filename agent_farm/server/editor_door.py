"""`af acp`: the door for editors. Each session is a builder; every act is a verb of `operations/`.

A session has its builder's id from the start, but only its first message spawns the builder, so that a
session that is opened and closed leaves nothing behind.
"""

from __future__ import annotations

import asyncio
import re
import secrets
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import acp
from acp import schema

from agent_farm import __version__
from agent_farm.builders.events import Event
from agent_farm.builders.status import FINISHED
from agent_farm.consent import ConsentRequest
from agent_farm.errors import AgentFarmError, ConsentNeeded, NotFound
from agent_farm.farm.chosen_runtime import choose_runtime
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.trash import list_kept
from agent_farm.operations.look import Logged
from agent_farm.operations.operation import Context, Operation
from agent_farm.operations.requests import read_request
from agent_farm.operations.status import Colleague
from agent_farm.operations.table import load
from agent_farm.runtimes import get_adapter
from agent_farm.server.editor_words import (
    MODES,
    as_acp_error,
    asks_and_has_ended,
    modes_of,
    not_delivered,
    text_of,
    waits,
)

_POLL_SECONDS = 0.3
_SHOWN_LINES = 40
_AGREE, _REFUSE = "agree", "refuse"
_OWN_ID = re.compile(r"editor-[0-9a-f]{6}")


@dataclass(slots=True)
class EditorSession:
    id: str
    farm: Farm
    directory: Path
    mode: str | None = None
    turn: asyncio.Event | None = None  # of the message being worked on; set when it is cancelled
    speaking: asyncio.Lock = field(default_factory=asyncio.Lock)


class EditorAgent:
    """What the editor's client calls. `order` holds the options for every new builder."""

    def __init__(self, order: Mapping[str, str], environ: Mapping[str, str]) -> None:
        self._order, self._environ = {**order, "on": "local"}, environ  # the editor is on this machine
        self._client: Any = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._sessions: dict[str, EditorSession] = {}

    def on_connect(self, client: Any) -> None:
        self._client, self._loop = client, asyncio.get_running_loop()

    async def initialize(self, protocol_version: int, **more: Any) -> schema.InitializeResponse:
        can = schema.AgentCapabilities(
            load_session=True,
            prompt_capabilities=schema.PromptCapabilities(embedded_context=True),
            session_capabilities=schema.SessionCapabilities(list=schema.SessionListCapabilities()),
        )
        name = schema.Implementation(name="agent-farm", title="agent-farm", version=__version__)
        return schema.InitializeResponse(
            protocol_version=acp.PROTOCOL_VERSION, agent_capabilities=can, agent_info=name, auth_methods=[]
        )

    async def new_session(self, cwd: str, **more: Any) -> schema.NewSessionResponse:
        """Reports now what would keep a spawn from succeeding; the first message asks for consent."""
        id = f"editor-{secrets.token_hex(3)}"
        session = self._open(id, cwd)
        try:
            order = {**self._order, "dry_run": True, "task": "…", "name": id}
            await self._do(session, "spawn", order, asks=False)
        except acp.RequestError as error:
            if (error.data or {}).get("code") != ConsentNeeded.code:
                raise
        self._sessions[id] = session
        return schema.NewSessionResponse(session_id=id, modes=self._modes(session))

    def _modes(self, session: EditorSession) -> schema.SessionModeState:
        asked = self._order.get("runtime"), self._order.get("permissions")
        now = choose_runtime(session.farm, asked[0], permissions=asked[1]).permissions
        return modes_of(now)

    async def set_session_mode(
        self, mode_id: str, session_id: str, **more: Any
    ) -> schema.SetSessionModeResponse:
        """Sets the mode for the builder that the first message will spawn."""
        session = self._require(session_id)
        if mode_id not in MODES:
            raise as_acp_error(NotFound(f"No mode {mode_id}", why=f"There are: {', '.join(MODES)}"))
        if await self._builder(session) is not None:
            why = "What a builder may do unasked is chosen before its first message. Open another session."
            raise as_acp_error(AgentFarmError(f"{session_id} has been started", why=why))
        session.mode = mode_id
        return schema.SetSessionModeResponse()

    async def load_session(self, cwd: str, session_id: str, **more: Any) -> schema.LoadSessionResponse:
        """Shows the first message and the last answer; the rest is in the builder's terminal.

        A session without any message has no builder, and nothing to show.
        """
        session = self._open(session_id, cwd)
        if _OWN_ID.fullmatch(session_id) and await self._is_new(session):
            self._sessions[session_id] = session
            return schema.LoadSessionResponse(modes=self._modes(session))
        told = await self._do(session, "prompt", id=session_id)
        if told.prompt:
            await self._tell(session, acp.update_user_message_text(told.prompt))
        logged: Logged = await self._do(session, "logs", id=session_id, limit=1)
        if logged.answer:
            await self._tell(session, acp.update_agent_message_text(logged.answer.text))
        self._sessions[session_id] = session
        return schema.LoadSessionResponse()

    async def list_sessions(self, cwd: str | None = None, **more: Any) -> schema.ListSessionsResponse:
        try:
            session = self._open("", cwd or str(Path.cwd()))
        except acp.RequestError:  # what is wrong is reported when a session is opened
            return schema.ListSessionsResponse(sessions=[])
        found = await self._do(session, "list_builders")
        rows = [
            schema.SessionInfo(session_id=one.id, cwd=str(session.directory), title=one.task)
            for one in found.builders
        ]
        return schema.ListSessionsResponse(sessions=rows)

    async def prompt(self, prompt: list[Any], session_id: str, **more: Any) -> schema.PromptResponse:
        session = self._require(session_id)
        session.turn = cancelled = asyncio.Event()
        async with session.speaking:  # two first messages would spawn two builders
            begun, seen = time.time(), await self._say(session, text_of(prompt))
        return schema.PromptResponse(stop_reason=await self._follow(session, cancelled, begun, seen))

    async def cancel(self, session_id: str, **more: Any) -> None:
        """Presses the keys that interrupt the runtime in its pane; failures are ignored."""
        session = self._sessions.get(session_id)
        turn = session.turn if session else None
        if session is None or turn is None:
            return
        with suppress(acp.RequestError):
            shown = await self._do(session, "status", ids=[session_id])
            runtime = shown.builders[0].runtime if shown.builders else ""
            keys = get_adapter(runtime, session.farm.root).cli.interrupt if runtime else ""
            if keys:
                await self._do(session, "send_keys", ids=[session_id], keys=keys)
        turn.set()

    def _require(self, session_id: str) -> EditorSession:
        if session_id not in self._sessions:
            raise as_acp_error(NotFound(f"No session {session_id} is open here"))
        return self._sessions[session_id]

    async def _is_new(self, session: EditorSession) -> bool:
        """Neither running nor removed: a removed builder could be restored."""
        return await self._builder(session) is None and not list_kept(session.farm, session.id)

    async def _say(self, session: EditorSession, text: str) -> int:
        """Spawn, send or resume; returns how many events the builder had before."""
        now = await self._builder(session)
        if now is None:
            mode = {"permissions": session.mode} if session.mode else {}
            await self._do(session, "spawn", {**self._order, **mode, "task": text, "name": session.id})
            return 0
        seen = len((await self._do(session, "logs", id=session.id, limit=0)).events)
        if now.state in FINISHED:
            await self._do(session, "resume", id=session.id, say=text)
            return seen
        delivered = (await self._do(session, "send", ids=[session.id], text=text)).deliveries[0]
        if delivered.outcome != "submitted":
            raise as_acp_error(not_delivered(delivered))
        return seen

    async def _follow(self, session: EditorSession, cancelled: asyncio.Event, begun: float, seen: int) -> Any:
        """Report what happens until the turn has ended; returns why it ended."""
        noted = ""
        while not cancelled.is_set():
            now = await self._builder(session)
            logged: Logged = await self._do(session, "logs", id=session.id, limit=0)
            for number, event in enumerate(logged.events[seen:], seen):
                await self._tell_event(session, number, event)
            seen = len(logged.events)
            if now is None:
                raise as_acp_error(NotFound(f"{session.id} is gone", why="It was removed while it worked."))
            if now.state == "idle" or asks_and_has_ended(now, logged):
                await self._conclude(session, begun, logged, now)
                return "end_turn"
            if now.state in FINISHED:
                why = now.reason or f"af logs {session.id} says more."
                raise as_acp_error(AgentFarmError(f"{session.id} is {now.state}", why=why))
            note = waits(now)
            if note and note != noted:
                noted = note
                await self._tell(session, acp.update_agent_message_text(note))
            try:
                await asyncio.wait_for(cancelled.wait(), _POLL_SECONDS)
            except TimeoutError:
                continue
        return "cancelled"

    async def _conclude(self, session: EditorSession, begun: float, logged: Logged, now: Colleague) -> None:
        """Send the turn's answer or, if its runtime reports none, its screen."""
        if now.state == "waiting":
            text = now.reason or ""
        elif logged.answer and logged.answer.at >= begun:
            text = logged.answer.text
        else:
            screen = (await self._do(session, "capture", id=session.id)).screen
            lines = [line.rstrip() for line in screen.splitlines() if line.strip()]
            text = "```\n" + "\n".join(lines[-_SHOWN_LINES:]) + "\n```"
        await self._tell(session, acp.update_agent_message_text(text))

    async def _tell_event(self, session: EditorSession, number: int, event: Event) -> None:
        detail = event.detail if isinstance(event.detail, dict) else {}
        tool, file = detail.get("tool_name"), detail.get("file")
        if event.source == "hook" and event.state == "working" and isinstance(tool, str):
            title = f"{tool} {file}" if isinstance(file, str) else tool
            kind: Any = "edit" if file else "other"
            call = acp.start_tool_call(f"event-{number}", title, kind=kind, status="completed")
            await self._tell(session, call)

    async def _builder(self, session: EditorSession) -> Colleague | None:
        found = await self._do(session, "list_builders")
        return next((one for one in found.builders if one.id == session.id), None)

    def _open(self, id: str, cwd: str) -> EditorSession:
        try:
            return EditorSession(id, open_farm(Path(cwd)), Path(cwd))
        except AgentFarmError as error:
            raise as_acp_error(error) from error
        except ValueError as error:  # NUL, or a lone surrogate
            raise as_acp_error(NotFound(f"{cwd!r} is no directory")) from error

    async def _do(
        self,
        session: EditorSession,
        verb: str,
        order: Mapping[str, Any] | None = None,
        *,
        asks: bool = True,
        **more: Any,
    ) -> Any:
        """Carry out a verb on a thread; its expected errors become the protocol's."""
        operation: Operation[Any, Any] = load(verb)
        context = Context(
            session.farm,
            ask=(lambda wanted: self._agrees(session, wanted)) if asks else None,
            naming_agrees=True,
            whole_ids=True,
            directory=session.directory,
            environ=self._environ,
        )
        try:
            request = read_request(operation, {**(order or {}), **more}, lax=True)
            return await asyncio.to_thread(operation.answer_to, context, request)
        except AgentFarmError as error:
            raise as_acp_error(error) from error

    def _agrees(self, session: EditorSession, wanted: Sequence[ConsentRequest]) -> bool:
        """Asks the editor's user about what the repository wants."""
        assert self._loop is not None
        content: list[Any] = [acp.tool_content(acp.text_block(one.shown)) for one in wanted]
        title = "Let this repository do what it wants"
        call = schema.ToolCallUpdate(tool_call_id="consent", title=title, kind="other", content=content)
        options = [
            schema.PermissionOption(option_id=_AGREE, name="Agree", kind="allow_once"),
            schema.PermissionOption(option_id=_REFUSE, name="Refuse", kind="reject_once"),
        ]
        asked = self._client.request_permission(session_id=session.id, tool_call=call, options=options)
        outcome = asyncio.run_coroutine_threadsafe(asked, self._loop).result().outcome
        return bool(outcome.outcome == "selected" and outcome.option_id == _AGREE)

    async def _tell(self, session: EditorSession, update: Any) -> None:
        await self._client.session_update(session_id=session.id, update=update)
