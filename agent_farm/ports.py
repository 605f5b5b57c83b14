"""Port blocks of builders, reserved across all farms of the user."""

from __future__ import annotations

import _socket  # `socket` itself takes a millisecond to load, and a probe needs nothing of it
import errno
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from msgspec import Struct

from agent_farm.digests import sha256
from agent_farm.disk import file_lock
from agent_farm.documents import load, store
from agent_farm.errors import AgentFarmError
from agent_farm.paths import user_state_directory

# Above the well-known servers and below what Linux (32768) and macOS (49152) hand out to clients.
FIRST_PORT, LAST_PORT = 20000, 32000

Blocks = dict[str, dict[str, list[int]]]


def reserve_ports(root: Path, builder_id: str, count: int) -> tuple[int, ...]:
    """`count` neighbouring free ports; the same builder gets the same ones while they are free."""
    if count == 0:
        return ()
    if count > LAST_PORT - FIRST_PORT:
        raise AgentFarmError(
            f"ports.per_builder is {count}, more ports than there are", hint="af config list"
        )
    with _changing() as blocks:
        mine = blocks.setdefault(str(root), {}).get(builder_id)
        if not mine or len(mine) != count:
            mine = blocks[str(root)][builder_id] = _draw(root, builder_id, count, blocks)
        return tuple(mine)


def _draw(root: Path, builder_id: str, count: int, blocks: Blocks) -> list[int]:
    """Takes blocks of farms that are missing (deleted, or not mounted) when nothing else is left."""
    start = _start(root, builder_id, count)
    for farms in (blocks, {place: farm for place, farm in blocks.items() if os.path.isdir(place)}):
        taken = {port for farm in farms.values() for ports in farm.values() for port in ports}
        found = _free_block(start, count, taken)
        if found:
            return found
    raise AgentFarmError(
        f"No {count} free consecutive ports between {FIRST_PORT} and {LAST_PORT}",
        why="Other builders hold them, or servers listen there.",
        hint="af doctor --fix",
    )


def release_ports(root: Path, builder_ids: Iterable[str]) -> None:
    if _file().exists():
        with _changing() as blocks:
            farm = blocks.get(str(root), {})
            for builder_id in builder_ids:
                farm.pop(builder_id, None)
            if not farm:
                blocks.pop(str(root), None)


def reserved_ports() -> Blocks:
    """Reserved ports: farm root -> builder id -> ports."""
    return _load()


def rename_farm(old: Path, new: Path) -> None:
    """Builders of a farm that was moved keep their ports."""
    if _file().exists():
        with _changing() as blocks:
            if moved := blocks.pop(str(old), None):
                blocks[str(new)] = {**moved, **blocks.get(str(new), {})}


def forget_farms(roots: Iterable[str]) -> None:
    """Drop all blocks of farms that no longer exist."""
    with _changing() as blocks:
        for root in roots:
            if not os.path.isdir(root):
                blocks.pop(root, None)


@contextmanager
def _changing() -> Iterator[Blocks]:
    """All blocks, under their lock; what they hold at the end of the block is stored, unless it raised."""
    with file_lock(_file().with_suffix(".lock")):
        blocks = _load()
        before = {root: dict(farm) for root, farm in blocks.items()}
        yield blocks
        if blocks != before:
            store(_file(), _File(blocks))


def _file() -> Path:
    return user_state_directory() / "ports.json"


def _start(root: Path, builder_id: str, count: int) -> int:
    digest = sha256(f"{root}\0{builder_id}".encode(errors="surrogateescape")).digest()
    slots = (LAST_PORT - FIRST_PORT) // count
    return FIRST_PORT + int.from_bytes(digest[:4], "big") % slots * count


def _free_block(start: int, count: int, taken: set[int]) -> list[int] | None:
    slots = (LAST_PORT - FIRST_PORT) // count
    for step in range(slots):
        first = FIRST_PORT + (start - FIRST_PORT + step * count) % (slots * count)
        block = list(range(first, first + count))
        if taken.isdisjoint(block) and all(_is_free(port) for port in block):
            return block
    return None


def _is_free(port: int) -> bool:
    """On both local addresses: many development servers listen only on ::1."""
    for family, host in ((_socket.AF_INET, "127.0.0.1"), (_socket.AF_INET6, "::1")):
        try:
            probe = _socket.socket(family, _socket.SOCK_STREAM)
            try:
                probe.setsockopt(_socket.SOL_SOCKET, _socket.SO_REUSEADDR, 1)
                probe.bind((host, port))
            finally:
                probe.close()
        except OSError as error:
            if error.errno not in (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL):  # no IPv6 here: nobody listens
                return False
    return True


class _File(Struct, frozen=True):
    farms: Blocks


def _load() -> Blocks:
    try:
        return load(_file(), _File).farms
    except FileNotFoundError:
        return {}
