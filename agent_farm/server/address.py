"""Where a server keeps its own, and the address it is found at."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct, structs

from agent_farm.disk import load_json, replace_file
from agent_farm.errors import DamagedFile
from agent_farm.launch import as_command
from agent_farm.own_files import read_own
from agent_farm.paths import FarmPaths
from agent_farm.server.tokens import new_token


class ServerFiles(Struct, frozen=True):
    """Where the farm's server keeps its own."""

    directory: Path

    @property
    def address(self) -> Path:
        return self.directory / "server.json"

    @property
    def lock(self) -> Path:
        return self.directory / "locks" / "server.lock"

    @property
    def start_lock(self) -> Path:
        return self.directory / "locks" / "server-start.lock"

    @property
    def token(self) -> Path:
        return self.directory / "architect.token"

    @property
    def log(self) -> Path:
        return self.directory / "butler.log"


# One that is signalled to end the server: others than processes have small and negative numbers.
_Process = Annotated[int, Meta(ge=2)] | None


class ServerAddress(Struct, frozen=True):
    """`pid` is None until the server has come up for the first time."""

    port: int
    token_file: Path
    started_at: float
    pid: _Process = None
    supervisor: _Process = None
    stopping: bool = False
    version: Literal[1] = 1

    def mcp_url(self, runtime_session_id: str) -> str:
        return f"http://localhost:{self.port}/mcp?runtime_session_id={runtime_session_id}"

    @property
    def token(self) -> str:
        """The architect's."""
        return load_token(self.token_file)


def server_files(root: Path) -> ServerFiles:
    return ServerFiles(FarmPaths(root).state)


def supervisor_of(files: ServerFiles) -> int | None:
    """The supervisor, as the process that started it knows it; it may have ended."""
    with suppress(OSError, ValueError):
        return int(files.lock.read_text())
    return None


def load_address(files: ServerFiles) -> ServerAddress | None:
    try:
        document = load_json(files.address)
    except FileNotFoundError:
        return None
    try:
        found = msgspec.convert(document, ServerAddress, dec_hook=lambda kind, value: kind(value))
    except msgspec.ValidationError as error:
        raise DamagedFile(
            f"{files.address} is damaged or newer than this version",
            hint=as_command("mv", files.address, f"{files.address}.old"),
        ) from error
    return structs.replace(found, token_file=files.token)  # the file names it for other programs


def store_address(files: ServerFiles, address: ServerAddress) -> None:
    replace_file(files.address, msgspec.json.encode(address, enc_hook=str) + b"\n")


def require_token(files: ServerFiles) -> None:
    """There is one, and af made it: whoever plants a token must not be let in by it."""
    try:
        load_token(files.token)
    except FileNotFoundError:
        replace_file(files.token, new_token() + "\n")


def load_token(file: Path) -> str:
    return read_own(file, secret=True).decode("utf-8", "replace").strip()
