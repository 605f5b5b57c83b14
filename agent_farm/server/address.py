"""Where a server keeps its files, and the address at which it is found."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, structs

from agent_farm.disk import replace_file
from agent_farm.documents import load, store
from agent_farm.own_files import read_own
from agent_farm.paths import FarmPaths
from agent_farm.server.tokens import new_token


class ServerFiles(Struct, frozen=True):
    """The files of the farm's server."""

    address: Path
    lock: Path
    start_lock: Path
    token: Path
    log: Path


# These processes are signalled to end the server, and small or negative numbers would mean others.
_Process = Annotated[int, Meta(ge=2)] | None


class ServerAddress(Struct, frozen=True):
    """`pid` is None until the server has come up for the first time."""

    port: int
    token_file: Path
    started_at: float
    pid: _Process = None
    supervisor: _Process = None
    stopping: bool = False

    def mcp_url(self, runtime_session_id: str) -> str:
        return f"http://localhost:{self.port}/mcp?runtime_session_id={runtime_session_id}"

    @property
    def token(self) -> str:
        """The architect's token."""
        return load_token(self.token_file)


def server_files(root: Path) -> ServerFiles:
    state = FarmPaths(root).state
    return ServerFiles(
        address=state / "server.json",
        lock=state / "locks" / "server.lock",
        start_lock=state / "locks" / "server-start.lock",
        token=state / "architect.token",
        log=state / "butler.log",
    )


def supervisor_of(files: ServerFiles) -> int | None:
    """The supervisor's process id, written by the process that started it; it may have ended."""
    with suppress(OSError, ValueError):
        return int(files.lock.read_text())
    return None


def load_address(files: ServerFiles) -> ServerAddress | None:
    try:
        found = load(files.address, ServerAddress)
    except FileNotFoundError:
        return None
    return structs.replace(found, token_file=files.token)  # the path in the file is for other programs


def store_address(files: ServerFiles, address: ServerAddress) -> None:
    store(files.address, address)


def require_token(files: ServerFiles) -> None:
    """Make sure there is a token that af made: whoever plants one must not be let in by it."""
    try:
        load_token(files.token)
    except FileNotFoundError:
        replace_file(files.token, new_token() + "\n")


def load_token(file: Path) -> str:
    return read_own(file, secret=True).decode("utf-8", "replace").strip()
