"""An input line with a visible draft and bracketed paste, below plain lines of output.

The draft is kept as bytes, so that no text changes on its way in.
"""

from __future__ import annotations

import os
import select
import sys
import termios
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import TracebackType

_PASTE_BEGIN, _PASTE_END = b"\x1b[200~", b"\x1b[201~"
_SEQUENCE = rb"(?s)\x1b(\[[0-?]*[ -/]*[@-~]|[^\[])"
_CTRL_C, _CTRL_D, _CTRL_U, _TAB, _ESC = 0x03, 0x04, 0x15, 0x09, 0x1B
_ENTER = (0x0D, 0x0A)
_ERASE = (0x7F, 0x08)
_LONE_ESC_SECONDS = 0.05
_ECHOED = 300  # characters


class Interrupted(Exception):
    """Ctrl-C or Esc; `key` says which."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class EndOfInput(Exception):
    pass


class InputLine:
    """`draft` is what was typed and not sent yet; sent messages wait in `sent`."""

    def __init__(self, prompt: str) -> None:
        self._prompt = prompt
        self._descriptor = sys.stdin.fileno()
        self._pending = b""
        self.draft = bytearray()
        self.sent = list[bytes]()

    def __enter__(self) -> None:
        """Reads keys one by one without echo, and pastes in brackets; undone at the end."""
        sys.stdout.reconfigure(errors="replace")  # type: ignore[union-attr]
        self._before = termios.tcgetattr(self._descriptor)
        raw = termios.tcgetattr(self._descriptor)
        raw[0] &= ~(termios.ICRNL | termios.INLCR | termios.IXON)
        raw[3] &= ~(termios.ECHO | termios.ICANON | termios.ISIG | termios.IEXTEN)
        termios.tcsetattr(self._descriptor, termios.TCSANOW, raw)
        _write("\x1b[?2004h")

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _write("\x1b[?2004l")
        termios.tcsetattr(self._descriptor, termios.TCSANOW, self._before)

    def say(self, text: str) -> None:
        """Print a line above the input line."""
        _write(f"\r\x1b[J{_printable(text)}\n")

    def echo(self, message: bytes, note: str = "") -> None:
        """Print a message that was sent, in a form that no screen rule takes for a draft."""
        self.say(f"» {_shortened(message, _ECHOED)}{note}")

    def show(self, instead: str = "") -> None:
        """Show as much of the draft's first line as fits, and how much more there is; or a question."""
        columns = os.get_terminal_size(sys.stdout.fileno()).columns
        draft = _shortened(bytes(self.draft), columns - len(self._prompt) - 1)
        _write(f"\r\x1b[J{instead or self._prompt + draft}")

    def wait(self, seconds: float | None) -> bool:
        """Take in what comes within `seconds` (None: wait for something); returns whether anything came."""
        if not select.select([self._descriptor], [], [], seconds)[0]:
            return False
        self._take(self._read())
        return True

    def pause(self, seconds: float) -> None:
        """Let time pass, and show what is typed in the meantime."""
        deadline = time.monotonic() + seconds
        while (left := deadline - time.monotonic()) > 0:
            if self.wait(left):
                self.show()

    def _read(self) -> bytes:
        try:
            data = os.read(self._descriptor, 65536)
        except OSError:
            data = b""
        if not data:
            raise EndOfInput
        return data

    def _take(self, data: bytes) -> None:
        self._pending += data
        while self._pending:
            if self._pending.startswith(_PASTE_BEGIN):
                if _PASTE_END not in self._pending:
                    return
                pasted, _, self._pending = self._pending[len(_PASTE_BEGIN) :].partition(_PASTE_END)
                self.draft += pasted.replace(b"\r", b"\n")  # a terminal sends a newline as \r
            elif self._pending[0] == _ESC:
                self._take_escape()
            else:
                key, self._pending = self._pending[0], self._pending[1:]
                self._take_key(key)

    def _take_escape(self) -> None:
        """Ignores cursor keys; Esc may also come alone."""
        import re  # takes as long as the agent itself, and such keys are rare

        if found := re.match(_SEQUENCE, self._pending):
            self._pending = self._pending[found.end() :]
        elif select.select([self._descriptor], [], [], _LONE_ESC_SECONDS)[0]:
            self._pending += self._read()
        else:
            self._pending = b""
            raise Interrupted("Esc")

    def _take_key(self, key: int) -> None:
        if key in _ENTER:
            self.sent.append(bytes(self.draft))
            self.draft.clear()
        elif key == _CTRL_C:
            raise Interrupted("Ctrl-C")
        elif key == _CTRL_D and not self.draft:
            raise EndOfInput
        elif key == _CTRL_U:
            self.draft.clear()
        elif key in _ERASE:
            del self.draft[-1:]
        elif key >= 0x20 or key == _TAB:
            self.draft.append(key)


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()


def _printable(text: str) -> str:
    """Text from outside must not move the cursor or set the title."""
    return "".join(letter if letter.isprintable() else "·" for letter in text)


def _shortened(content: bytes, room: int) -> str:
    first, *others = content.decode("utf-8", "replace").split("\n")
    note = f" [{len(others) + 1} lines, {len(content)} bytes]" if others else ""
    room = max(10, room - len(note))
    shown = _printable(first[: room + 1])
    return (shown if len(shown) <= room else shown[: room - 1] + "…") + note
