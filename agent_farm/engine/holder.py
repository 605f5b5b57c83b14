"""A program that holds the connection to one Ray cluster; commands ask it through a socket of this user's.

It ends by itself when nobody has asked for a while, and when the node that it is connected to ends.
"""

from __future__ import annotations

import os
import select
import socket
import sys
import threading
import time
from contextlib import suppress
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.engine.holder_words import Problem, Question, Said, hear, require_own_peer, say
from agent_farm.engine.ray_engine import RayEngine
from agent_farm.errors import AgentFarmError

READY = b"ready\n"
_IDLE_SECONDS = 900.0
_HEAR_SECONDS = 30.0
_AT_ONCE = 64


class Holder:
    def __init__(self, cluster: str) -> None:
        self._engine = RayEngine(cluster)
        self._places = threading.Lock()
        self._asking = 0
        self._asked_at = time.monotonic()
        self._ends = threading.Event()

    def serve(self, listener: socket.socket) -> None:
        room = threading.Semaphore(_AT_ONCE)
        while not self._ends.is_set():
            if not select.select([listener], [], [], 1.0)[0]:
                if not self._asking and time.monotonic() - self._asked_at > _IDLE_SECONDS:
                    return
                continue
            connection, _ = listener.accept()
            room.acquire()
            self._asking += 1
            threading.Thread(target=self._answer, args=(connection, room), daemon=True).start()

    def _answer(self, connection: socket.socket, room: threading.Semaphore) -> None:
        with connection, suppress(OSError, EOFError, AgentFarmError):
            try:
                connection.settimeout(_HEAR_SECONDS)
                require_own_peer(connection)
                asked = hear(connection, Question)
                try:
                    said = self._said(asked, connection)
                except AgentFarmError as error:
                    told = (error.code, error.what, error.why, error.hint)
                    began = getattr(error, "began", True)
                    said = Said(problem=Problem(*told, began))
                except Exception as error:  # Ray raises anything; the command has to be told
                    said = Said(problem=Problem("unreachable", "Ray failed", _first_line(error)))
                say(connection, said)
                if asked.do == "end":
                    self._ends.set()
            finally:
                self._asked_at = time.monotonic()
                self._asking -= 1
                room.release()

    def _said(self, asked: Question, connection: socket.socket) -> Said:
        engine = self._engine
        if asked.do == "capacity":
            return Said(rooms=engine.capacity())
        if asked.do == "place":
            with self._places:
                return Said(host=engine.place(asked.name, asked.host, asked.avoided))
        if asked.do == "release":
            with self._places:  # after a `place` whose caller did not wait for it
                engine.release(asked.name)
        elif asked.do in ("drain", "undrain"):
            assert asked.host
            (engine.drain if asked.do == "drain" else engine.undrain)(asked.name, asked.host)
        elif asked.do == "places":
            return Said(places=engine.places())
        elif asked.do == "call":
            assert asked.host
            lines = engine.call(
                asked.host, asked.data, seconds=asked.seconds, wanted=lambda: _is_there(connection)
            )
            return Said(lines=tuple(lines))
        return Said()


def _is_there(connection: socket.socket) -> bool:
    """Whether the command still waits: it sends nothing more, and closes its end when it ends."""
    return not select.select([connection], [], [], 0)[0]


def _first_line(error: Exception) -> str:
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)[
        :300
    ]


def main(cluster: str, place: str) -> int:
    path = Path(place)
    with file_lock(path.with_suffix(".lock"), wait=0):
        holder = Holder(cluster)
        path.unlink(missing_ok=True)
        with socket.socket(socket.AF_UNIX) as listener:
            before = os.umask(0o177)
            listener.bind(place)
            os.umask(before)
            listener.listen(_AT_ONCE)
            os.write(sys.stdout.fileno(), READY)
            os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
            try:
                holder.serve(listener)
            finally:
                path.unlink(missing_ok=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:3]))
