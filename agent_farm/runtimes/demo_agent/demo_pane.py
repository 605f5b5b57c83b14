"""The demo agent in a terminal: works on its prompt, shows an input line, answers messages."""

from __future__ import annotations

import os
import sys

from agent_farm.lean import signal
from agent_farm.runtimes.console.input_line import EndOfInput, InputLine, Interrupted
from agent_farm.runtimes.console.reporting import Hooks
from agent_farm.runtimes.demo_agent.conversation import Leave, open_conversation

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType

    from agent_farm.runtimes.demo_agent.arguments import Arguments


def run_interactive(arguments: Arguments) -> int:
    """Runs until /exit, Ctrl-D, a directive or a signal; returns the exit code."""
    if not sys.stdin.isatty():
        sys.stderr.write("demo: interactive needs a terminal\n")
        return 2
    agent = _Agent(arguments)
    signal.signal(signal.SIGTERM, _leave_on_signal)
    with agent.line:
        return agent.run()


def _leave_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Agent:
    """It is the `Door` of its turns: a terminal with a person in front of it."""

    def __init__(self, arguments: Arguments) -> None:
        self._arguments = arguments
        self._conversation = open_conversation(arguments.home, arguments.conversation, arguments.resume)
        self._answered_bytes = 0
        self._hooks = Hooks(tuple(arguments.hook), self._conversation.id, os.getcwd())
        self.line = InputLine("demo> ")

    def run(self) -> int:
        self._greet()
        code = 0
        try:
            if self._arguments.prompt_file:
                with open(self._arguments.prompt_file, "rb") as file:
                    prompt = file.read()
                self._answer(prompt, edits=not self._arguments.resume)
            self._converse()
        except Leave as leave:
            code = leave.code
        except EndOfInput:
            pass
        self.line.say(f"bye ({code})")
        self._hooks.report("SessionEnd", reason="exit")
        return code

    def _greet(self) -> None:
        known = self._conversation.messages
        verb = "resumed" if self._arguments.resume else "new"
        self.line.say(f"demo agent · {verb} conversation {self._conversation.id} · {known} messages")
        if role := self._arguments.role:
            self.line.say(f"role: {len(role.encode())} bytes, {role.strip().splitlines()[0][:60]}")
        self._hooks.report("SessionStart", source="resume" if self._arguments.resume else "startup")

    def _converse(self) -> None:
        while True:
            self.line.show()
            try:
                if not self.line.sent:
                    self.line.wait(None)
            except Interrupted:
                self.line.draft.clear()
            while self.line.sent:
                self._take(self.line.sent.pop(0))

    def _take(self, message: bytes) -> None:
        if message.strip() == b"/exit":
            raise Leave(0)
        if message.strip():
            self._answer(message, edits=False)

    def _answer(self, message: bytes, *, edits: bool) -> None:
        from agent_farm.runtimes.demo_agent.demo_turn import (  # an agent that only waits does not load it
            Turn,
            TurnFailed,
            bytes_of,
            spending,
        )

        text = message.decode("utf-8", "surrogateescape")
        digest = self._conversation.remember(text)
        self._conversation.save(self._arguments.home)
        self._hooks.report("UserPromptSubmit", prompt=text.encode("utf-8", "replace").decode())
        self.line.echo(message)
        self.line.say(f"prompt sha256 {digest} bytes {len(message)}")
        turn = Turn(self, self._arguments, self._conversation, True, f"Demo work on {digest[:12]}")
        try:
            self.step("reading the task")
            self.pause(0.1)
            answer = turn.run(text, default_file=f"demo-{digest[:8]}.md" if edits else None)
        except Interrupted as interrupted:
            self._interrupted(interrupted.key)
        except TurnFailed as error:
            self.line.say(f"error: {error}")
            self._hooks.report("StopFailure", error="api_error", message=str(error))
        else:
            self._conversation.save(self._arguments.home)
            self.line.say(f"answer: {answer} · message {self._conversation.messages}")
            self._answered_bytes += bytes_of(answer)
            spent = spending(self._conversation.heard_bytes, self._answered_bytes)
            self._hooks.report("Stop", last_assistant_message=answer, **spent)

    def _interrupted(self, key: str) -> None:
        """Reports Ctrl-C but not Esc, like CLIs whose stale state only the screen can correct."""
        self.line.say("interrupted")
        self.line.draft.clear()
        if key == "Ctrl-C":
            self._hooks.report("Stop")

    def step(self, text: str) -> None:
        self.line.say(f"● {text}")
        self.line.show()

    def pause(self, seconds: float) -> None:
        self.line.pause(seconds)

    def turn(self) -> None:
        self.step("another turn")

    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None:
        self.step(f"{name}: {result}")
        self._hooks.report("PostToolUse", tool_name=name, tool_input=given)

    def ask(self, question: str) -> bool:
        """Shows a dialog that takes 1 or Enter for yes, and 2 for no."""
        self._hooks.report("PermissionRequest", tool_name="ask", message=question)
        self.line.say(f"demo? {question}")
        self.line.say("  1. yes")
        self.line.say("  2. no")
        draft, self.line.draft = self.line.draft, bytearray()
        try:
            answer = self._yes_or_no()
        except Interrupted:
            self._hooks.report("PostToolUse", tool_name="ask")
            raise
        finally:  # its terminal may also be gone: then the question is still open
            self.line.draft = draft
        self._hooks.report("PostToolUse", tool_name="ask")
        return answer

    def _yes_or_no(self) -> bool:
        while True:
            self.line.show(instead="demo? 1 yes · 2 no ")
            self.line.wait(None)
            key = bytes(self.line.draft[-1:])
            self.line.draft.clear()
            if key in (b"1", b"y") or self.line.sent:
                self.line.sent.clear()
                return True
            if key in (b"2", b"n"):
                return False
