"""An external session in a pane: its status as it changes, and an input line whose messages resume it."""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from types import FrameType

from agent_farm.descendants import live_children
from agent_farm.runtimes.console import terminal
from agent_farm.runtimes.console.hooks import Hooks
from agent_farm.runtimes.console.keyboard import EndOfInput, Interrupted, Keyboard
from agent_farm.runtimes.external_driver.contract import (
    AdapterFailed,
    Order,
    adopt_descendants,
    check_status,
    end_descendants,
    failed_session,
    load_state,
    resume,
    spawn,
)

PROMPT = "> "
POLL_SECONDS = 0.5


def run_interactive(order: Order) -> int:
    """Until the session has failed, /exit, Ctrl-D or a signal; then nothing of it is left running."""
    if not sys.stdin.isatty():
        sys.stderr.write("external: interactive needs a terminal\n")
        return 2
    adopt_descendants()
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave)
    try:
        with terminal.raw_terminal(sys.stdin.fileno()):
            return _Session(order).run()
    finally:
        end_descendants()


def _leave(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Session:
    def __init__(self, order: Order) -> None:
        self._order = order
        self._keyboard = Keyboard(sys.stdin.fileno())
        self._session = order.session
        self._status = ""
        self._since = time.monotonic()
        self._messages: deque[str] = deque()  # taken from the keyboard, not yet by the session
        self._is_left_over = False  # a turn that ended with its pane: no failure of this one

    def run(self) -> int:
        try:
            self._begin()
            while True:
                self._follow()
                if self._messages and self._status == "completed":
                    self._send(self._messages.popleft())
                else:
                    self._listen()
        except AdapterFailed as error:
            terminal.show_line(f"failed: {error}")
            self._report("failed", message=str(error))
            return 1
        except EndOfInput:
            return 0

    def _begin(self) -> None:
        if self._session is None:
            self._session = spawn(self._order)
            self._report("message", prompt=self._order.prompt)
        elif self._order.prompt:
            terminal.show_line(resume(self._order, self._session, self._order.prompt))
            self._report("message", prompt=self._order.prompt)
        else:
            self._is_left_over = True
        terminal.show_line(f"{self._order.name} session {self._session}")
        self._since = time.monotonic()

    def _follow(self) -> None:
        assert self._session is not None
        live_children()  # collects adopted processes that have ended
        told = check_status(self._order, self._session)
        status = "completed" if told == "failed" and self._is_left_over else told
        if status != self._status:
            self._status = status
            left_over = ": its last turn did not end well" if told != status else ""
            terminal.show_line(f"● {status}{left_over}{self._substep()}")
            if status != "failed":
                self._report(status)
        if status == "failed":
            raise failed_session(self._order, self._session)
        late = time.monotonic() > self._since + self._order.timeout_seconds
        if late and status != "completed":
            minutes = self._order.timeout_seconds / 60
            raise AdapterFailed(f"ended after {minutes:g} minutes (timeout_minutes)")
        terminal.show_draft(PROMPT, bytes(self._keyboard.draft))

    def _substep(self) -> str:
        state = load_state(self._order) or {}
        return f" · {state['current_substep']}" if state.get("current_substep") else ""

    def _listen(self) -> None:
        """Keys for as long as a status is good for."""
        deadline = time.monotonic() + POLL_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            try:
                if self._keyboard.wait(left):
                    terminal.show_draft(PROMPT, bytes(self._keyboard.draft))
            except Interrupted:
                self._keyboard.draft.clear()
            while self._keyboard.sent:
                self._keep(self._keyboard.sent.popleft())
            if self._messages and self._status == "completed":
                return

    def _keep(self, message: bytes) -> None:
        """A session that is busy takes no message; it gets them one by one when it is done."""
        text = message.decode("utf-8", "surrogateescape")
        if text.strip() == "/exit":
            raise EndOfInput
        if text.strip():
            later = "" if self._status == "completed" else ", for when the session is done"
            terminal.show_line(f"» {len(message)} bytes{later}")  # not like an input line that holds a draft
            self._messages.append(text)

    def _send(self, text: str) -> None:
        assert self._session is not None
        try:
            terminal.show_line(resume(self._order, self._session, text))
        except AdapterFailed as error:
            terminal.show_line(f"not taken: {error}")
            self._keyboard.draft[:0] = text.encode("utf-8", "surrogateescape")  # nothing is lost
            return
        self._report("message", prompt=text)
        self._is_left_over, self._status = False, ""
        self._since = time.monotonic()

    def _report(self, event: str, **payload: object) -> None:
        Hooks(tuple(self._order.hook), self._session or "", self._order.cwd).report(event, **payload)
