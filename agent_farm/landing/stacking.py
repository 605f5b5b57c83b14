"""Moves a builder's own commits onto the present commit of its base; prepared without touching a file."""

from __future__ import annotations

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, WorkWouldBeLost
from agent_farm.farm.farm import Farm
from agent_farm.git.advancing import advance
from agent_farm.git.changes import tree_state
from agent_farm.git.merging import Work, replay
from agent_farm.git.settling import Move, settle_interrupted_move
from agent_farm.landing.arrival import arrived_base, base_of, commits_of
from agent_farm.landing.place import landing_lock
from agent_farm.launch import as_command
from agent_farm.shield import Shield


class NotLandedYet(AgentFarmError):
    code = "not-landed"


class Ground(Struct, frozen=True):
    """What a builder's work should stand on; `left` are commits below it that have landed there as copies."""

    base: str
    commit: str
    left: tuple[str, ...]


def find_ground(farm: Farm, record: BuilderRecord) -> Ground:
    """For a stacked builder, where the one below it landed; for any other, its base as it is now."""
    if record.stack is None:
        return Ground(record.base, farm.repository.resolve_commit(record.base), (record.base_commit,))
    base = base_of(farm, record.stack)
    landed = arrived_base(farm, record.stack, base) if base is not None else None
    if landed is None:
        raise NotLandedYet(
            f"{record.stack}, on which {record.id} is stacked, has not landed"
            + (f" on {base}" if base else ""),
            why=None if base else "It was removed, and is no longer in the trash.",
            hint=as_command("af", "merge", record.stack) if base else "af removed",
        )
    left = {record.base_commit, *commits_of(farm, record.stack)}
    return Ground(landed, farm.repository.resolve_commit(landed), tuple(sorted(left)))


def move_onto(farm: Farm, record: BuilderRecord, ground: Ground, shield: Shield) -> tuple[str, str]:
    """Move its branch and files; returns the tip before and after. MergeConflicts changes nothing.

    `shield` holds until the caller has recorded the move.
    """
    tree = farm.tree(record)
    with landing_lock(farm, tree) as lock:
        settle_interrupted_move(tree)
        state = tree_state(tree, each_file=True)
        status = as_command("git", "-C", tree.path, "status")
        if not state.clean:
            raise WorkWouldBeLost(
                f"{record.id} is not moved: it has uncommitted files",
                evidence=[*state.dirty, *state.untracked, *state.unread],
                hint=status,
            )
        if state.head is None or state.branch is None:
            raise AgentFarmError(f"{record.id} is not moved: it is on no branch", hint=status)
        work = Work(state.head, state.branch, "")
        tip = replay(farm.repository, work, ground.commit, ground.left)
        if tip != state.head:
            move = Move(f"of {record.id} onto {ground.base}", state.branch, state.head, tip)
            advance(tree, move, hooks=None, fds=[lock], shield=shield)
        return state.head, tip
