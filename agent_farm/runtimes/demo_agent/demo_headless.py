"""The demo agent without a terminal: reads the prompt from standard input, prints lines of JSON."""

from __future__ import annotations

import sys
import time

from agent_farm.runtimes.console.reporting import emit
from agent_farm.runtimes.demo_agent.arguments import Arguments
from agent_farm.runtimes.demo_agent.conversation import Leave, open_conversation
from agent_farm.runtimes.demo_agent.demo_turn import Turn, TurnFailed, bytes_of, spending


def run_headless(arguments: Arguments) -> int:
    prompt = sys.stdin.buffer.read().decode("utf-8", "surrogateescape")
    conversation = open_conversation(arguments.home, arguments.conversation, arguments.resume)
    history = conversation.messages
    digest = conversation.remember(prompt)
    conversation.save(arguments.home)
    emit({"type": "start", "conversation_id": conversation.id, "history": history, "sha256": digest})
    door = _Lines()
    door.turn()
    turn = Turn(door, arguments, conversation, commits=False, message=f"Demo work on {digest[:12]}")
    try:
        turn.run(prompt, default_file=None)
    except TurnFailed as error:
        emit({"type": "result", "error": {"kind": error.kind, "message": str(error)}})
        return 1
    except Leave as leave:
        return leave.code
    finally:
        conversation.save(arguments.home)
    answer = turn.answer
    if answer is None:
        size = len(prompt.encode("utf-8", "surrogateescape"))
        answer = f"done · message {history + 1} · prompt sha256 {digest} bytes {size}"
    emit(
        {"type": "result", "output": answer, **spending(bytes_of(prompt + arguments.role), bytes_of(answer))}
    )
    return 0


class _Lines:
    """Reports a turn as lines of JSON; nobody can be asked, so a question is refused."""

    def step(self, text: str) -> None:
        emit({"type": "step", "text": text})

    def pause(self, seconds: float) -> None:
        time.sleep(seconds if seconds > 0.1 else 0.0)  # the short pauses are for people who watch

    def turn(self) -> None:
        emit({"type": "turn"})

    def ask(self, question: str) -> bool:
        self.tool("ask", {"question": question}, "refused: nobody to ask", True)
        return False

    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None:
        emit({"type": "tool", "name": name, "input": given, "result": result, "is_error": is_error})
        self.turn()
