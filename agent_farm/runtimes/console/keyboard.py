"""Keys from a raw terminal as events, with bracketed paste; the draft is bytes, so no text is changed."""

from __future__ import annotations

import os
import select
from collections import deque

_PASTE_BEGIN = b"\x1b[200~"
_PASTE_END = b"\x1b[201~"
_CTRL_C, _CTRL_D, _CTRL_U, _ESC = 0x03, 0x04, 0x15, 0x1B
_ENTER = (0x0D, 0x0A)
_ERASE = (0x7F, 0x08)
_LONE_ESC_SECONDS = 0.05


class Interrupted(Exception):
    """Ctrl-C or Esc; `key` says which."""

    def __init__(self, key: str) -> None:
        super().__init__(key)
        self.key = key


class EndOfInput(Exception):
    pass


class Keyboard:
    """`draft` is what was typed and not yet sent; sent messages wait in `sent`."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._pending = b""
        self._pasting = False
        self.draft = bytearray()
        self.sent: deque[bytes] = deque()

    def wait(self, seconds: float | None) -> bool:
        """Take in what comes within `seconds` (None: until something does); whether anything came."""
        ready, _, _ = select.select([self._descriptor], [], [], seconds)
        if not ready:
            return False
        self._take(self._read())
        return True

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
            if self._pasting:
                if not self._take_paste():
                    return
            elif self._pending[0] == _ESC:
                if not self._take_escape():
                    return
            else:
                self._take_key(self._pending[0])

    def _take_paste(self) -> bool:
        """Pasted bytes up to the end mark; terminals send a newline as a carriage return."""
        end = self._pending.find(_PASTE_END)
        if end < 0:
            keep = len(_PASTE_END) - 1  # the mark may be cut in two
            if len(self._pending) > keep:
                self._add_pasted(self._pending[:-keep])
                self._pending = self._pending[-keep:]
            return False
        self._add_pasted(self._pending[:end])
        self._pending = self._pending[end + len(_PASTE_END) :]
        self._pasting = False
        return True

    def _add_pasted(self, data: bytes) -> None:
        self.draft += data.replace(b"\r", b"\n")

    def _take_escape(self) -> bool:
        """A paste begins, a cursor key is ignored, or Esc stands alone; False when more has to come."""
        if self._pending.startswith(_PASTE_BEGIN):
            self._pending = self._pending[len(_PASTE_BEGIN) :]
            self._pasting = True
            return True
        more, _, _ = select.select([self._descriptor], [], [], _LONE_ESC_SECONDS)
        if more:
            self._pending += self._read()
            return True
        if len(self._pending) == 1:
            self._pending = b""
            raise Interrupted("Esc")
        self._pending = _without_sequence(self._pending)
        return True

    def _take_key(self, key: int) -> None:
        self._pending = self._pending[1:]
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
        elif key >= 0x20 or key == 0x09:
            self.draft.append(key)


def _without_sequence(data: bytes) -> bytes:
    """`data` after one CSI or two-byte sequence."""
    if data[1:2] != b"[":
        return data[2:]
    for index in range(2, len(data)):
        if 0x40 <= data[index] <= 0x7E:
            return data[index + 1 :]
    return b""
