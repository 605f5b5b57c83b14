"""The client of an ACP agent, in a process of its own: sends one prompt, follows the turn, ends the agent.

A JSON object on standard input is the order; every message goes out as one line of JSON. Run as
`python -E -P -m agent_farm.runtimes.acp_worker`; only this process pays the half second that importing the
library takes. The agent gets this process's environment, which has only the declared variables.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
from collections.abc import Mapping
from contextlib import suppress
from typing import Any

import acp
from acp import schema

from agent_farm.runtimes.acp_rules import Rules, asked_of, option_for
from agent_farm.runtimes.console.reporting import emit
from agent_farm.runtimes.environment import MCP_TOKEN

_MESSAGE_LIMIT = 1 << 25
_QUIET_SECONDS = 0.3  # some agents go on sending the history after they said that it is loaded
_LONGEST_HISTORY = 30.0


class Refused(Exception):
    """The agent cannot do what is wanted; `kind` is the kind of failure."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        self.kind = kind


class _Client:
    """Receives the agent's updates, and answers its requests."""

    def __init__(self, rules: Rules) -> None:
        self._rules = rules
        self._calls: dict[str, dict[str, Any]] = {}
        self.listens = False
        self.heard = asyncio.Event()

    def on_connect(self, conn: object) -> None:
        """Required by the library."""

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        self.heard.set()
        told = _plain(update)
        if key := told.get("toolCallId"):
            self._calls[key] = {**self._calls.get(key, {}), **told}
        if self.listens:
            emit({"type": "update", "update": told})

    async def request_permission(
        self, session_id: str, tool_call: Any, options: list[Any], **more: Any
    ) -> schema.RequestPermissionResponse:
        call = _plain(tool_call)
        before = self._calls.setdefault(call["toolCallId"], {})
        allowed = self._rules.allow(asked_of(call, before))
        if not before:  # the first that some agents report of a call
            emit({"type": "update", "update": {**call, "sessionUpdate": "tool_call"}})
        option = option_for([_plain(one) for one in options], allowed=allowed)
        if option is None:
            return schema.RequestPermissionResponse(outcome=schema.DeniedOutcome(outcome="cancelled"))
        chosen = schema.AllowedOutcome(outcome="selected", option_id=option)
        return schema.RequestPermissionResponse(outcome=chosen)

    async def until_quiet(self) -> None:
        with suppress(TimeoutError):
            async with asyncio.timeout(_LONGEST_HISTORY):
                while True:
                    self.heard.clear()
                    await asyncio.wait_for(self.heard.wait(), _QUIET_SECONDS)


async def run(order: Mapping[str, Any]) -> int:
    client = _Client(Rules(**order["rules"]))
    program, *words = order["command"]
    how = {"limit": _MESSAGE_LIMIT, "stderr": None}
    env = dict(os.environ)
    heard: Any = client  # it does not offer the feature
    try:
        async with acp.spawn_agent_process(
            heard, program, *words, env=env, cwd=order["cwd"], transport_kwargs=how
        ) as (agent, _):
            return await _turn(agent, client, order)
    except Refused as refused:
        emit({"type": "failed", "kind": refused.kind, "message": str(refused)})
    except acp.RequestError as error:
        emit({"type": "error", "code": error.code, "message": _words(error)})
    except ConnectionError:  # the last line of its standard error says why
        return 1
    return 1


async def _turn(agent: Any, client: _Client, order: Mapping[str, Any]) -> int:
    session = ""
    try:
        async with asyncio.timeout(order["seconds"]):
            session = await _session(agent, client, order)
            emit({"type": "session", "id": session})
            client.listens = True
            blocks = [acp.text_block(text) for text in (order["role"], order["prompt"]) if text]
            response = await agent.prompt(session_id=session, prompt=blocks)
    except TimeoutError:
        if session:
            await agent.cancel(session_id=session)
        limit = f"ended after {order['seconds'] / 60:g} minutes (timeout_minutes)"
        raise Refused("time-limit", limit) from None
    emit({"type": "done", "response": _plain(response)})
    return 0


async def _session(agent: Any, client: _Client, order: Mapping[str, Any]) -> str:
    """A session with the farm's server, in the requested mode and with the requested model."""
    name = order["name"]
    told = await agent.initialize(
        protocol_version=acp.PROTOCOL_VERSION,
        client_info=schema.Implementation(name="agent-farm", version="1"),
    )
    if told.protocol_version != acp.PROTOCOL_VERSION:
        spoken = f"{told.protocol_version} of the protocol, af {acp.PROTOCOL_VERSION}"
        raise Refused("failed", f"{name} speaks version {spoken}")
    if order["auth"]:
        await agent.authenticate(method_id=order["auth"])
    given = {"cwd": order["cwd"], "mcp_servers": _servers(told.agent_capabilities, order)}
    try:
        if order["resume"]:
            session, made = order["resume"], await _resumed(agent, client, told, order, given)
        else:
            made = await agent.new_session(**given)
            session = made.session_id
    except acp.RequestError as error:
        if error.code != acp.RequestError.auth_required().code:
            raise
        ways = ", ".join(f"{way.id} ({way.name})" for way in told.auth_methods or ())
        raise Refused("not-logged-in", f"{name} requires a login: {ways or 'it names no method'}") from error
    if order["mode"]:
        await agent.set_session_mode(session_id=session, mode_id=order["mode"])
    if order["model"]:
        option = _model_option(made, name)
        await agent.set_config_option(session_id=session, config_id=option, value=order["model"])
    return str(session)


async def _resumed(
    agent: Any, client: _Client, told: Any, order: Mapping[str, Any], given: Mapping[str, Any]
) -> Any:
    """Resumes without the history if the agent can; otherwise the history that it sends is ignored."""
    capabilities = told.agent_capabilities
    try:
        if capabilities.session_capabilities and capabilities.session_capabilities.resume:
            return await agent.resume_session(session_id=order["resume"], **given)
        if capabilities.load_session:
            made = await agent.load_session(session_id=order["resume"], **given)
            await client.until_quiet()
            return made
    except acp.RequestError as error:
        if error.code == acp.RequestError.auth_required().code:
            raise
        what = f"{order['name']} has no session {order['resume']}: {_words(error)}"
        raise Refused("refused-argument", what) from error
    what = f"{order['name']} cannot continue a session: it does not offer session/load"
    raise Refused("refused-argument", what)


def _servers(capabilities: Any, order: Mapping[str, Any]) -> list[Any]:
    server = order["server"]
    if server is None:
        return []
    can = capabilities.mcp_capabilities
    if not getattr(can, server["transport"], False):
        what = f"{order['name']} takes no MCP server over {server['transport']}"
        raise Refused("mcp-unreachable", f"{what}, and the farm's server has no other transport")
    token = os.environ.get(MCP_TOKEN)
    headers = [schema.HttpHeader(name="Authorization", value=f"Bearer {token}")] if token else []
    form = schema.HttpMcpServer if server["transport"] == "http" else schema.SseMcpServer
    return [form(type=server["transport"], name=server["name"], url=server["url"], headers=headers)]


def _model_option(made: Any, name: str) -> str:
    for option in made.config_options or () if made else ():
        if option.category == "model":
            return str(option.id)
    raise Refused("refused-argument", f"{name} does not let clients choose a model over ACP")


def _words(error: Any) -> str:
    """Many agents put what went wrong into `data`."""
    data = error.data if isinstance(error.data, dict) else {}
    details = data.get("details") or data.get("message")
    return f"{error}: {details}" if details else str(error)


def _plain(model: Any) -> dict[str, Any]:
    document: dict[str, Any] = model.model_dump(mode="json", by_alias=True, exclude_none=True)
    return document


if __name__ == "__main__":
    sys.exit(asyncio.run(run(json.load(sys.stdin))))
