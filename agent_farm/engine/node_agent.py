"""The agent on one machine of a Ray cluster: it carries out calls there, each in a process of its own.

It keeps nothing about farms or builders; when it dies, another one replaces it.
"""

from __future__ import annotations

import subprocess

from cryptography.hazmat.primitives.asymmetric.x25519 import X25519PrivateKey

from agent_farm.engine.child import answer_here, end_group
from agent_farm.engine.sealing import opened
from agent_farm.errors import Overdue, Unreachable


class NodeAgent:
    """Its methods are called concurrently, from many threads."""

    def __init__(self) -> None:
        self._private = X25519PrivateKey.generate()
        self._running: dict[str, subprocess.Popen[bytes]] = {}
        self._ended: set[str] = set()

    def key(self) -> bytes:
        return self._private.public_key().public_bytes_raw()

    def answer(self, token: str, sealed: bytes, seconds: float) -> tuple[list[bytes], str | None, bool]:
        """The lines, why they ended early if they did, and whether the time limit was the reason."""
        data = opened(self._private, sealed)
        if data is None:
            return [], "The call was sealed for another agent", False
        lines: list[bytes] = []
        try:
            lines.extend(answer_here(data, seconds, begun=lambda process: self._begun(token, process)))
        except Unreachable as error:
            return lines, error.sentence, isinstance(error, Overdue)
        finally:
            self._running.pop(token, None)
            self._ended.discard(token)
        return lines, None, False

    def end(self, token: str) -> None:
        """Give up a call, even if it arrives later."""
        self._ended.add(token)
        if process := self._running.get(token):
            end_group(process)

    def _begun(self, token: str, process: subprocess.Popen[bytes]) -> None:
        self._running[token] = process
        if token in self._ended:
            end_group(process)
