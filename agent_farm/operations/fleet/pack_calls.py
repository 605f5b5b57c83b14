"""Sends commits to a cluster's machine and back, in calls; what arrives here is checked."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Mapping
from typing import TypeVar

import msgspec

from agent_farm.errors import AgentFarmError, TimedOut, Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book
from agent_farm.fleet.calling import call
from agent_farm.git.git_process import GitError, time_left
from agent_farm.git.other_machine import NotWhole, needs_room, too_much
from agent_farm.git.packs import known_here, make_pack, set_refs, take_pack, tips
from agent_farm.operations.fleet.rows_elsewhere import answer_of
from agent_farm.operations.for_home.pieces import PIECE_BYTES, Give, Given, Piece, Read, Take, Tips
from agent_farm.operations.operation import Answer

_SECONDS = 600.0

A = TypeVar("A", bound=Answer)


def send_packs(farm: Farm, book: Book, host: str, refs: Mapping[str, str]) -> None:
    """Set refs there to these commits; only objects that the machine lacks travel."""
    root, wanted = farm.repository.root, set(refs.values())
    known = known_here(root, _asked(Tips, book, host, "pack_tips", {}).commits)
    with tempfile.TemporaryFile(dir=farm.paths.fleet.parent) as pack:
        size = 0 if wanted <= set(known) else make_pack(root, sorted(wanted), known, pack)
        name = os.urandom(8).hex()
        for offset in range(0, max(size, 1), PIECE_BYTES):
            is_last = offset + PIECE_BYTES >= size
            piece = Take(name, offset, pack.read(PIECE_BYTES), dict(refs) if is_last else {})
            _asked(Tips, book, host, "pack_take", msgspec.to_builtins(piece))


def fetch_packs(farm: Farm, book: Book, host: str, refs: Mapping[str, str], *, most_bytes: int) -> None:
    """Fetch their refs and history under the names given for them here; only missing objects travel."""
    root = farm.repository.root
    give = msgspec.to_builtins(Give(tuple(refs), tips(root), most_bytes))
    try:
        given = _asked(Given, book, host, "pack_give", give)
    except AgentFarmError as error:
        if error.code != GitError.code:
            raise
        raise _not_whole(host, error) from error
    if given.size > most_bytes:
        raise too_much(host)
    if given.commits.keys() != refs.keys():
        raise Unreachable(f"{host} has not said where {len(refs)} refs are")
    with tempfile.TemporaryFile(dir=farm.paths.fleet.parent) as pack:
        pack.write(given.data)
        while (offset := pack.tell()) < given.size:
            read = msgspec.to_builtins(Read(given.name, offset))
            data = _asked(Piece, book, host, "pack_read", read).data
            if not data:
                raise Unreachable(f"{host} has only sent a part of its pack")
            pack.write(data)
        if offset > most_bytes:
            raise too_much(host)
        try:
            if offset:
                take_pack(root, pack, most_bytes=most_bytes)
            set_refs(root, {ours: given.commits[theirs] for theirs, ours in refs.items()})
        except GitError as error:
            if needs_room(error):
                raise too_much(host) from error
            raise _not_whole(host, error) from error


def _not_whole(host: str, error: AgentFarmError) -> NotWhole:
    return NotWhole(f"{host} has not sent the whole history", why=error.sentence[:300])


def _asked(kind: type[A], book: Book, host: str, verb: str, request: Mapping[str, object]) -> A:
    seconds = time_left(_SECONDS)
    assert seconds is not None
    if seconds <= 0:
        raise TimedOut(f"There was no time left to exchange commits with {host}")
    return answer_of(kind, call(book, host, verb, request, seconds=seconds), host)
