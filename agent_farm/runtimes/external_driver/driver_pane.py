"""An external session in a pane: shows its status, and an input line whose messages resume it."""

from __future__ import annotations

import signal
import sys
import time
from collections import deque
from types import FrameType

from agent_farm.descendants import live_children
from agent_farm.runtimes.console.input_line import EndOfInput, InputLine, Interrupted
from agent_farm.runtimes.console.reporting import Hooks
from agent_farm.runtimes.external_driver.adapter_commands import AdapterFailed, DrivenSession

_POLL_SECONDS = 0.5


def run_interactive(session: DrivenSession) -> int:
    """Runs until the session has failed, /exit, Ctrl-D or a signal; then nothing of it is left running."""
    if not sys.stdin.isatty():
        sys.stderr.write("external: interactive needs a terminal\n")
        return 2
    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, _leave_on_signal)
    pane = _Pane(session)
    with pane.line:
        return pane.run()


def _leave_on_signal(number: int, frame: FrameType | None) -> None:
    raise SystemExit(128 + number)


class _Pane:
    def __init__(self, session: DrivenSession) -> None:
        self._session = session
        self.line = InputLine("> ")
        self._status = ""
        self._messages: deque[str] = deque()  # typed, but not yet taken by the session
        self._is_left_over = False  # its last turn ended with the pane, and is no failure

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
            self.line.say(f"failed: {error}")
            self._report("failed", message=str(error))
            return 1
        except EndOfInput:
            return 0

    def _begin(self) -> None:
        session = self._session
        if session.id is None:
            session.spawn()
            self._report("message", prompt=session.prompt)
        elif session.prompt:
            self.line.say(session.resume(session.prompt))
            self._report("message", prompt=session.prompt)
        else:
            self._is_left_over = True
        self.line.say(f"{session.name} session {session.id}")

    def _follow(self) -> None:
        live_children()  # collects adopted processes that have ended
        told = self._session.status()
        status = "completed" if told == "failed" and self._is_left_over else told
        if status != self._status:
            self._status = status
            left_over = ": its last turn did not end well" if told != status else ""
            substep = (self._session.load_state() or {}).get("current_substep")
            self.line.say(f"● {status}{left_over}" + (f" · {substep}" if substep else ""))
            if status == "failed":
                raise self._session.failure()
            self._report(status)
        self.line.show()

    def _listen(self) -> None:
        """Read keys for as long as a status is valid."""
        deadline = time.monotonic() + _POLL_SECONDS
        while (left := deadline - time.monotonic()) > 0:
            try:
                if self.line.wait(left):
                    self.line.show()
            except Interrupted:
                self.line.draft.clear()
            while self.line.sent:
                self._keep(self.line.sent.pop(0))
            if self._messages and self._status == "completed":
                return

    def _keep(self, message: bytes) -> None:
        """Keep a message until the session, which takes none while it is busy, is done."""
        text = message.decode("utf-8", "surrogateescape")
        if text.strip() == "/exit":
            raise EndOfInput
        if text.strip():
            later = "" if self._status == "completed" else " (for when the session is done)"
            self.line.echo(message, later)
            self._messages.append(text)

    def _send(self, text: str) -> None:
        try:
            self.line.say(self._session.resume(text))
        except AdapterFailed as error:
            self.line.say(f"not taken: {error}")
            self.line.draft[:0] = text.encode("utf-8", "surrogateescape")  # so that nothing is lost
            return
        self._report("message", prompt=text)
        self._is_left_over, self._status = False, ""

    def _report(self, event: str, **payload: object) -> None:
        Hooks(tuple(self._session.hook), self._session.id or "", self._session.cwd).report(event, **payload)
