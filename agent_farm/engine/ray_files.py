"""Where a user's files for Ray are: the token, the node that was started here, sockets with short paths."""

from __future__ import annotations

import hashlib
import os
import secrets
import tempfile
from pathlib import Path

from msgspec import Struct

from agent_farm.disk import is_locked, make_directory, replace_file
from agent_farm.documents import load
from agent_farm.engine.certificates import TLS_FILES, require_tls
from agent_farm.errors import AgentFarmError, ToolMissing
from agent_farm.own_files import read_own, require_own_directory
from agent_farm.paths import user_state_directory

_LONGEST = 40  # characters of a directory in which Ray creates sockets, whose paths may have 107
_TOKEN_BYTES = 32


class Node(Struct, frozen=True):
    """The node of a cluster that was started on this machine. `tls` is a directory with TLS_FILES, or "".
    `host` is the address at which other machines reach it, "" in a file of an older version."""

    pid: int
    cluster: str
    name: str
    tls: str = ""
    host: str = ""


def state_directory() -> Path:
    return user_state_directory() / "ray"


def token_file() -> Path:
    return state_directory() / "token"


def node_file() -> Path:
    return state_directory() / "node.json"


def node_lock() -> Path:
    """Held as long as the node is up."""
    return state_directory() / "node.lock"


def node_log() -> Path:
    return state_directory() / "node.log"


def read_node() -> Node | None:
    try:
        return load(node_file(), Node)
    except FileNotFoundError:
        return None


def running_node() -> Node | None:
    node = read_node()
    return node if node and is_locked(node_lock()) else None


def run_directory() -> Path:
    """Only this user can enter it; each state directory has its own."""
    short = hashlib.sha256(os.fsencode(state_directory())).hexdigest()[:6]
    bases = (os.environ.get("XDG_RUNTIME_DIR"), tempfile.gettempdir(), "/tmp")
    places = (Path(base) / f"ray-{os.geteuid()}-{short}" for base in bases if base and os.path.isabs(base))
    place = next(place for place in places if len(str(place)) <= _LONGEST)
    make_directory(place, alone=True)
    require_own_directory(place)
    return place


def make_token() -> None:
    """The token of clusters that this user starts, created once; never that of a cluster one has joined."""
    own = state_directory() / "own-token"
    try:
        token = read_own(own, secret=True)
    except FileNotFoundError:
        token = secrets.token_hex(_TOKEN_BYTES).encode()
        make_directory(state_directory())
        replace_file(own, token)
    store_token(token.decode("ascii", "replace"))


def read_token() -> str:
    return read_own(token_file(), secret=True).decode("ascii", "replace").strip()


def store_token(token: str) -> None:
    if not 16 <= len(token) <= 4096 or not token.isascii() or not token.isprintable() or " " in token:
        raise AgentFarmError("This is not the token of a cluster", hint="af fleet join --help")
    make_directory(state_directory())
    replace_file(token_file(), token)


def ray_environment(tls: str) -> dict[str, str]:
    """Variables of Ray for each of our processes that talks to a cluster; none of them contains the token."""
    found = {
        "RAY_USAGE_STATS_ENABLED": "0",
        "RAY_AUTH_MODE": "token",
        "RAY_AUTH_TOKEN_PATH": str(token_file()),
        "RAY_DISABLE_IMPORT_WARNING": "1",
    }
    if tls:
        place = require_tls(tls)
        names = ("RAY_TLS_CA_CERT", "RAY_TLS_SERVER_CERT", "RAY_TLS_SERVER_KEY")
        found |= {name: str(place / file) for name, file in zip(names, TLS_FILES, strict=True)}
        found["RAY_USE_TLS"] = "1"
    return found


def require_ray() -> None:
    from importlib.util import find_spec

    if find_spec("ray") is None:
        raise ToolMissing(
            "Ray is not installed in af's environment",
            why="Clusters need it; machines over plain ssh do not.",
            hint="pip install 'codev-agent-farm[fleet]'",
        )
