"""An ACP agent as a whole program, for tests: the demo agent's turns behind the library's agent side.

It asks before each edit, keeps its sessions in ACP_AGENT_HOME, and tells its history when one is loaded.
Further arguments: `no-http` takes no MCP server over HTTP, `no-load` loads no session, `login` wants a login
first, `ends` ends before it says anything.
"""

from __future__ import annotations

import asyncio
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import acp
from acp import schema

from agent_farm.runtimes.demo_agent.arguments import Arguments
from agent_farm.runtimes.demo_agent.conversation import (
    UnknownConversation,
    open_conversation,
)
from agent_farm.runtimes.demo_agent.demo_turn import Turn, TurnFailed, bytes_of

WORDS = sys.argv[1:]
HOME = Path(os.environ.get("ACP_AGENT_HOME", "/nonexistent"))


class Door:
    """A turn, on a thread of its own, told to the client as it goes."""

    def __init__(self, client: Any, session: str) -> None:
        self.client, self.session = client, session
        self.loop = asyncio.get_running_loop()
        self.calls = 0

    def step(self, text: str) -> None:
        self.tell(acp.update_agent_thought_text(text))

    def pause(self, seconds: float) -> None:
        time.sleep(seconds if seconds > 0.1 else 0.0)

    def turn(self) -> None:
        self.tool("think", {}, "thought", False)

    def ask(self, question: str) -> bool:
        """`edit PATH?` is a question about an edit, anything else one about a command."""
        path = question.removeprefix("edit ").removesuffix("?")
        is_edit = path != question
        call = schema.ToolCallUpdate(
            tool_call_id=f"asked-{self.calls}",
            title=question,
            kind="edit" if is_edit else "execute",
            locations=[schema.ToolCallLocation(path=path)] if is_edit else [],
        )
        options = [
            schema.PermissionOption(option_id="yes", name="Yes", kind="allow_once"),
            schema.PermissionOption(option_id="always", name="Always", kind="allow_always"),
            schema.PermissionOption(option_id="no", name="No", kind="reject_once"),
        ]
        self.calls += 1
        asked = self.client.request_permission(session_id=self.session, tool_call=call, options=options)
        outcome = self.wait(asked).outcome
        self.tell(acp.update_tool_call(call.tool_call_id, status="completed"))
        return outcome.outcome == "selected" and outcome.option_id == "yes"

    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None:
        key = f"call-{self.calls}"
        self.calls += 1
        content = [acp.tool_content(acp.text_block(result))]
        status = "failed" if is_error else "completed"
        self.tell(acp.start_tool_call(key, name, raw_input=given))
        self.tell(acp.update_tool_call(key, status=status, content=content))

    def tell(self, update: Any) -> None:
        self.wait(self.client.session_update(session_id=self.session, update=update))

    def wait(self, coroutine: Any) -> Any:
        return asyncio.run_coroutine_threadsafe(coroutine, self.loop).result()


class Agent:
    def __init__(self) -> None:
        self.client: Any = None
        self.logged_in = "login" not in WORDS

    def on_connect(self, client: Any) -> None:
        self.client = client

    async def initialize(self, protocol_version: int, **more: Any) -> schema.InitializeResponse:
        can = schema.AgentCapabilities(
            load_session="no-load" not in WORDS,
            mcp_capabilities=schema.McpCapabilities(http="no-http" not in WORDS),
        )
        ways = [schema.AuthMethodAgent(id="by-key", name="With a key")]
        return schema.InitializeResponse(protocol_version=1, agent_capabilities=can, auth_methods=ways)

    async def authenticate(self, method_id: str, **more: Any) -> schema.AuthenticateResponse:
        self.logged_in = method_id == "by-key"
        return schema.AuthenticateResponse()

    async def new_session(self, cwd: str, mcp_servers: Any = (), **more: Any) -> schema.NewSessionResponse:
        if not self.logged_in:
            raise acp.RequestError.auth_required()
        conversation = open_conversation(HOME, None, None)
        self._open(cwd, mcp_servers, conversation)
        return schema.NewSessionResponse(session_id=conversation.id)

    async def load_session(
        self, cwd: str, session_id: str, mcp_servers: Any = (), **more: Any
    ) -> schema.LoadSessionResponse:
        try:
            conversation = open_conversation(HOME, None, session_id)
        except UnknownConversation as error:
            raise acp.RequestError.resource_not_found(str(error)) from error
        self._open(cwd, mcp_servers, conversation)
        history = acp.update_agent_message_text("what it said before")
        await self.client.session_update(session_id=session_id, update=history)
        return schema.LoadSessionResponse()

    def _open(self, cwd: str, servers: Any, conversation: Any) -> None:
        os.chdir(cwd)
        document = {
            server.name: {
                "type": "http",
                "url": server.url,
                "headers": {header.name: header.value for header in server.headers},
            }
            for server in servers or ()
        }
        config = HOME / "mcp.json"
        config.parent.mkdir(parents=True, exist_ok=True)
        config.write_text(json.dumps({"mcpServers": document}))
        config.chmod(0o600)
        self.arguments = Arguments(home=str(HOME), mcp_config=config, permissions="ask")
        self.conversation = conversation

    async def prompt(self, prompt: Any, session_id: str, **more: Any) -> schema.PromptResponse:
        text = prompt[-1].text
        digest = self.conversation.remember(text)
        self.conversation.save(HOME)
        door = Door(self.client, session_id)
        turn = Turn(door, self.arguments, self.conversation, commits=False, message="Work of an ACP agent")
        said = f"done · message {self.conversation.messages} · prompt sha256 {digest} {text}"
        try:
            await asyncio.to_thread(turn.run, text, default_file=None)
        except TurnFailed as error:
            raise acp.RequestError(-32603, f"Internal error: {error}") from error
        answer = turn.answer if turn.answer is not None else said
        update = acp.update_agent_message_text(answer)
        await self.client.session_update(session_id=session_id, update=update)
        given, made = sum(bytes_of(block.text) for block in prompt) // 4 + 1, bytes_of(answer) // 4 + 1
        usage = schema.Usage(input_tokens=given, output_tokens=made, total_tokens=given + made)
        return schema.PromptResponse(stop_reason="end_turn", usage=usage)

    async def cancel(self, session_id: str, **more: Any) -> None:
        (HOME / "cancelled").write_text(session_id)


if __name__ == "__main__":
    if "ends" in WORDS:
        sys.exit("acp-agent: it has no home")
    asyncio.run(acp.run_agent(Agent()))
