"""The demo agent in a terminal: works on its prompt, shows an input line, answers what is sent to it."""

from __future__ import annotations

import signal
import sys
import time
from pathlib import Path
from types import FrameType

from agent_farm.runtimes.console import terminal
from agent_farm.runtimes.console.hooks import Hooks
from agent_farm.runtimes.console.keyboard import EndOfInput, Interrupted, Keyboard
from agent_farm.runtimes.demo_agent.arguments import Arguments
from agent_farm.runtimes.demo_agent.conversation import (
    Conversation,
    UnknownConversation,
    open_conversation,
)
from agent_farm.runtimes.demo_agent.spending import spending
from agent_farm.runtimes.demo_agent.turn import Leave, Turn, TurnFailed

PROMPT = "demo> "
STEP_SECONDS = 0.1


def run_interactive(arguments: Arguments) -> int:
    """Until /exit, Ctrl-D, a directive or a signal; the exit code."""
    if not sys.stdin.isatty():
        sys.stderr.write("demo: interactive needs a terminal\n")
        return 2
    sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
    try:
        conversation = open_conversation(arguments.home, arguments.conversation, resume=arguments.resume)
    except UnknownConversation as error:
        sys.stderr.write(f"demo: {error}\n")
        return 1
    signal.signal(signal.SIGTERM, _leave_on_signal)
    with terminal.raw_terminal(sys.stdin.fileno()):
        return _Agent(arguments, conversation).run()


def _leave_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Agent:
    def __init__(self, arguments: Arguments, conversation: Conversation) -> None:
        self._arguments = arguments
        self._conversation = conversation
        self._answered_bytes = 0
        self._cwd = Path.cwd()
        self._hooks = Hooks(arguments.hook, conversation.id, str(self._cwd))
        self._keyboard = Keyboard(sys.stdin.fileno())

    def run(self) -> int:
        self._greet()
        code = 0
        try:
            if self._arguments.prompt_file:
                first = self._arguments.prompt_file.read_bytes()
                self._answer(first, edits=not self._arguments.resume)
            self._converse()
        except Leave as leave:
            code = leave.code
        except EndOfInput:
            pass
        terminal.show_line(f"bye ({code})")
        self._hooks.report("SessionEnd", reason="exit")
        return code

    def _greet(self) -> None:
        known = len(self._conversation.messages)
        verb = "resumed" if self._arguments.resume else "new"
        terminal.show_line(f"demo agent · {verb} conversation {self._conversation.id} · {known} messages")
        if self._arguments.role_file:
            role = self._arguments.role_file.read_text(encoding="utf-8")
            terminal.show_line(f"role: {len(role.encode())} bytes, {role.strip().splitlines()[0][:60]}")
        self._hooks.report("SessionStart", source="resume" if self._arguments.resume else "startup")

    def _converse(self) -> None:
        while True:
            terminal.show_draft(PROMPT, bytes(self._keyboard.draft))
            try:
                if not self._keyboard.sent:
                    self._keyboard.wait(None)
            except Interrupted:
                self._keyboard.draft.clear()
            while self._keyboard.sent:
                self._take(self._keyboard.sent.popleft())

    def _take(self, message: bytes) -> None:
        if message.strip() == b"/exit":
            raise Leave(0)
        if message.strip():
            terminal.show_line(f"» {len(message)} bytes")  # not like an input line that holds a draft
            self._answer(message, edits=False)

    def _answer(self, message: bytes, *, edits: bool) -> None:
        text = message.decode("utf-8", "surrogateescape")
        digest = self._conversation.remember(text)
        self._hooks.report("UserPromptSubmit", prompt=text.encode("utf-8", "replace").decode())
        terminal.show_line(f"prompt sha256 {digest} bytes {len(message)}")
        turn = Turn(
            door=self,
            cwd=self._cwd,
            permissions=self._arguments.permissions,
            mcp_config=self._arguments.mcp_config,
            commits=True,
            message=f"Demo work on {digest[:12]}",
        )
        try:
            self.step("reading the task")
            self.pause(STEP_SECONDS)
            answer = turn.run(text, default_file=f"demo-{digest[:8]}.md" if edits else None)
        except Interrupted as interrupted:
            self._interrupted(interrupted.key)
        except TurnFailed as error:
            terminal.show_line(f"error: {error}")
            self._hooks.report("StopFailure", error="api_error", message=str(error))
        else:
            terminal.show_line(f"answer: {answer} · message {len(self._conversation.messages)}")
            self._answered_bytes += len(answer.encode("utf-8", "replace"))
            given = sum(int(str(message["bytes"])) for message in self._conversation.messages)
            self._hooks.report("Stop", **spending(given, self._answered_bytes))

    def _interrupted(self, key: str) -> None:
        """Ctrl-C is reported; Esc is not, as in the CLIs whose stale state has to be seen on the screen."""
        terminal.show_line("interrupted")
        self._keyboard.draft.clear()
        if key == "Ctrl-C":
            self._hooks.report("Stop")

    # what a turn needs to be seen and answered
    def step(self, text: str) -> None:
        terminal.show_line(f"● {text}")
        terminal.show_draft(PROMPT, bytes(self._keyboard.draft))

    def pause(self, seconds: float) -> None:
        """Let time pass, and what is typed meanwhile be seen."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self._keyboard.wait(left):
                terminal.show_draft(PROMPT, bytes(self._keyboard.draft))

    def turn(self) -> None:
        self.step("another turn")

    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None:
        self.step(f"{name}: {result}")
        self._hooks.report("PostToolUse", tool_name=name, tool_input=given)

    def ask(self, question: str) -> bool:
        """A dialog that takes 1 or Enter for yes and 2 for no."""
        self._hooks.report("PermissionRequest", tool_name="ask", message=question)
        terminal.show_line(f"demo? {question}")
        draft, self._keyboard.draft = self._keyboard.draft, bytearray()
        try:
            return self._answered()
        finally:
            self._keyboard.draft = draft
            self._hooks.report("PostToolUse", tool_name="ask")

    def _answered(self) -> bool:
        while True:
            terminal.write("\r\x1b[Jdemo? 1 yes · 2 no ")
            self._keyboard.wait(None)
            key = bytes(self._keyboard.draft[-1:])
            self._keyboard.draft.clear()
            if key in (b"1", b"y") or self._keyboard.sent:
                self._keyboard.sent.clear()
                return True
            if key in (b"2", b"n"):
                return False
