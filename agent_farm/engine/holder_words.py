"""The protocol between a command and the holder of a Ray connection: one question and one answer, on a Unix
socket that only this user can open."""

from __future__ import annotations

import os
import socket
import struct
from typing import Literal, TypeVar

import msgspec
from msgspec import Struct

from agent_farm.engine.contract import Room
from agent_farm.errors import ForeignFile, Unreachable

MOST_BYTES = 80 * 1024 * 1024
_LENGTH = struct.Struct("!Q")
_CREDENTIALS = struct.Struct("3i")
_PART = 1 << 20


class Question(Struct, frozen=True):
    do: Literal["capacity", "place", "release", "call", "places", "drain", "undrain", "end"]
    name: str = ""
    host: str | None = None
    avoided: tuple[str, ...] = ()
    data: bytes = b""
    seconds: float = 0.0


class Problem(Struct, frozen=True):
    code: str
    what: str
    why: str | None = None
    hint: str | None = None
    began: bool = True


class Said(Struct, frozen=True):
    rooms: tuple[Room, ...] = ()
    host: str = ""
    lines: tuple[bytes, ...] = ()
    places: dict[str, str | None] = {}
    problem: Problem | None = None


T = TypeVar("T")


def say(connection: socket.socket, message: Struct) -> None:
    data = msgspec.msgpack.encode(message)
    connection.sendall(_LENGTH.pack(len(data)) + data)


def hear(connection: socket.socket, kind: type[T]) -> T:
    (length,) = _LENGTH.unpack(_exactly(connection, _LENGTH.size))
    if length > MOST_BYTES:
        raise Unreachable(f"A message of {length} bytes is too long")
    try:
        return msgspec.msgpack.decode(_exactly(connection, length), type=kind)
    except msgspec.DecodeError as error:
        raise Unreachable("The connection to the cluster was answered by something else") from error


def _exactly(connection: socket.socket, length: int) -> bytes:
    parts, left = [], length
    while left:
        part = connection.recv(min(left, _PART))
        if not part:
            raise EOFError
        parts.append(part)
        left -= len(part)
    return b"".join(parts)


def require_own_peer(connection: socket.socket) -> None:
    """Except on Linux, this relies on the socket's directory, which nobody else can enter."""
    option = getattr(socket, "SO_PEERCRED", None)
    if option is None:
        return
    found = connection.getsockopt(socket.SOL_SOCKET, option, _CREDENTIALS.size)
    _, user, _ = _CREDENTIALS.unpack(found)
    if user != os.geteuid():
        raise ForeignFile(f"The other end of the socket is user {user}'s")
