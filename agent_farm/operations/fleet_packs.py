"""Commits to a machine of a cluster and back, by the calls that it answers: what arrives here is checked."""

from __future__ import annotations

import os
from collections.abc import Mapping

import msgspec

from agent_farm.builders.ref_names import is_branch_name
from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book
from agent_farm.fleet.calling import call
from agent_farm.git.git_process import GitError
from agent_farm.git.other_machine import fetched_ref
from agent_farm.git.packs import known_here, make_pack, set_refs, take_pack, tips
from agent_farm.operations.packs_for_home import PIECE_BYTES, Give, Given, Piece, Read, Take, Tips

_MOST_BYTES = 2 << 30
_SECONDS = 600.0


def send_packs(farm: Farm, book: Book, host: str, refs: Mapping[str, str]) -> None:
    """Each ref there is that commit then; only what is missing there travels."""
    root, wanted = farm.repository.root, set(refs.values())
    known = known_here(root, msgspec.convert(_asked(book, host, "pack_tips", {}), Tips).commits)
    pack = b"" if wanted <= set(known) else make_pack(root, sorted(wanted), known)
    name = os.urandom(8).hex()
    for offset in range(0, max(len(pack), 1), PIECE_BYTES):
        is_last = offset + PIECE_BYTES >= len(pack)
        piece = Take(name, offset, pack[offset : offset + PIECE_BYTES], dict(refs) if is_last else {})
        _asked(book, host, "pack_take", msgspec.to_builtins(piece))


def fetch_packs(farm: Farm, book: Book, host: str, builder: str, theirs: str) -> str:
    """The commit that the branch is at there, with its history here."""
    if not is_branch_name(theirs):
        raise AgentFarmError(f"{theirs!r:.80} cannot be the branch of {builder}")
    root = farm.repository.root
    try:
        give = msgspec.to_builtins(Give(theirs, tips(root)))
        given = msgspec.convert(_asked(book, host, "pack_give", give), Given)
        pack = bytearray()
        while len(pack) < given.size:
            if given.size > _MOST_BYTES:
                raise Unreachable(f"{host} would send {given.size} bytes")
            read = msgspec.to_builtins(Read(given.name, len(pack)))
            data = msgspec.convert(_asked(book, host, "pack_read", read), Piece).data
            if not data:
                raise Unreachable(f"{host} has sent a part of its pack")
            pack += data
        if pack:
            take_pack(root, bytes(pack))
        set_refs(root, {fetched_ref(builder): given.commit})
    except (msgspec.ValidationError, GitError) as error:
        raise Unreachable(f"{host} has sent no whole history of {builder}", why=str(error)[:300]) from error
    return given.commit


def _asked(book: Book, host: str, verb: str, request: Mapping[str, object]) -> dict[str, object]:
    found = call(book, host, verb, request, seconds=_SECONDS)
    return {name: value for name, value in found.items() if name != "version"}
