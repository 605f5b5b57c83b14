"""The demo agent without a terminal: the prompt on standard input, lines of JSON on standard output."""

from __future__ import annotations

import json
import sys
import time
from pathlib import Path

from agent_farm.runtimes.demo_agent.arguments import Arguments
from agent_farm.runtimes.demo_agent.conversation import UnknownConversation, open_conversation
from agent_farm.runtimes.demo_agent.spending import spending
from agent_farm.runtimes.demo_agent.turn import Leave, McpUnreachable, Turn, TurnFailed


class _Lines:
    """A turn as lines of JSON; there is nobody to ask, so a question is refused."""

    def step(self, text: str) -> None:
        _emit({"type": "step", "text": text})

    def pause(self, seconds: float) -> None:
        time.sleep(seconds if seconds > 0.1 else 0.0)  # the steps' own pauses are for people who watch

    def turn(self) -> None:
        _emit({"type": "turn"})

    def ask(self, question: str) -> bool:
        self.tool("ask", {"question": question}, "refused: nobody to ask", True)
        return False

    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None:
        _emit({"type": "tool", "name": name, "input": given, "result": result, "is_error": is_error})
        self.turn()


def run_headless(arguments: Arguments) -> int:
    prompt = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    role = arguments.role_file.read_text(encoding="utf-8") if arguments.role_file else ""
    try:
        conversation = open_conversation(arguments.home, arguments.conversation, resume=arguments.resume)
    except UnknownConversation as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    history = len(conversation.messages)
    digest = conversation.remember(prompt)
    _emit({"type": "start", "conversation_id": conversation.id, "history": history, "sha256": digest})
    door = _Lines()
    door.turn()
    turn = Turn(
        door=door,
        cwd=Path.cwd(),
        permissions=arguments.permissions,
        mcp_config=arguments.mcp_config,
        commits=False,
        message=f"Demo work on {digest[:12]}",
        reads=arguments.reads,
        keeps=arguments.keeps,
    )
    try:
        answer = turn.run(prompt, default_file=None)
    except TurnFailed as error:
        kind = "mcp-unreachable" if isinstance(error, McpUnreachable) else "api-error"
        _emit({"type": "result", "error": {"kind": kind, "message": str(error)}})
        return 1
    except Leave as leave:
        return leave.code
    if turn.answer is None:
        size = conversation.messages[-1]["bytes"]
        answer = f"done · message {history + 1} · prompt sha256 {digest} bytes {size}"
    _emit({"type": "result", "output": answer, **spending(_bytes(prompt + role), _bytes(answer))})
    return 0


def _bytes(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _emit(line: dict[str, object]) -> None:
    sys.stdout.write(json.dumps(line) + "\n")
    sys.stdout.flush()
