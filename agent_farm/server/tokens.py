"""Bearer tokens, of which only hashes are stored; and the tokens of builders."""

from __future__ import annotations

import os
from pathlib import Path

from msgspec import Struct

from agent_farm.digests import sha256
from agent_farm.disk import make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.paths import is_builder_id


class _Kept(Struct, frozen=True):
    """What a builder's run directory stores of its token."""

    sha256: str


def new_token() -> str:
    return os.urandom(32).hex()


def hash_token(token: str) -> str:
    """A plain hash is enough for 256 random bits."""
    return sha256(token.encode()).hexdigest()


def builder_token_file(runs: Path, builder_id: str) -> Path:
    return runs / builder_id / "token.json"


def mint_builder_token(runs: Path, builder_id: str) -> str:
    """A new token for the builder; the old one stops working. It is deleted with the run directory."""
    token = new_token()
    file = builder_token_file(runs, builder_id)
    make_directory(file.parent)
    store(file, _Kept(hash_token(token)), lasting=False)
    return token


def builder_hash(runs: Path, builder_id: str) -> str | None:
    if not is_builder_id(builder_id):
        return None
    kept = load_if_whole(builder_token_file(runs, builder_id), _Kept, secret=True)
    return kept.sha256 if kept else None
