"""What a checkpoint records about its builder."""

from __future__ import annotations

import msgspec
from msgspec import Struct

from agent_farm.git.checkpoint_reading import Checkpoint, NoCheckpoint
from agent_farm.typed import make_known


class About(Struct, frozen=True):
    """`state` is its status then, `branch` what it had checked out, `tip` the tip of its own branch.

    `conversation` is the one in `talk/`. `start_failed` says why its start failed, if it did: its worktree
    may not be whole.
    """

    id: str
    state: str
    cut_short: bool
    branch: str | None
    tip: str | None
    conversation: str | None
    left_out: tuple[str, ...]
    start_failed: str | None = None


def about_of(found: Checkpoint, id: str) -> About:
    make_known(About)
    try:
        about = msgspec.json.decode(found.about, type=About)
    except (msgspec.DecodeError, ValueError) as error:
        raise NoCheckpoint("The fetched commit is not a checkpoint", why=str(error)) from error
    if about.id != id or (about.tip is not None and about.tip not in found.parents):
        raise NoCheckpoint(f"The fetched commit is not a checkpoint of {id}")
    return about
