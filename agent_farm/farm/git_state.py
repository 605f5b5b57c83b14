"""Git's view of the builders' worktrees: asked in parallel within a bound, remembered beyond it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import TreeState, states
from agent_farm.git.divergence import Divergence, ahead_behind

# A status that people watch answers in time; what was not read by then is shown with its age.
BOUND_SECONDS = 0.5
FRESH_SECONDS = 600.0


@dataclass(frozen=True, slots=True)
class GitState:
    """`at` is when it was read: seconds since the epoch."""

    dirty: int
    untracked: int
    ahead: int | None
    behind: int | None
    at: float

    def to_json(self) -> dict[str, Any]:
        return asdict(self)


def git_states(farm: Farm, records: Sequence[BuilderRecord], *, fresh: bool = False) -> dict[str, GitState]:
    """The state of each worktree that is there; an older one where it could not be read in time."""
    present = [record for record in records if record.worktree_path.is_dir()]
    if not present:
        return {}
    bound = FRESH_SECONDS if fresh else BOUND_SECONDS
    remembered = _load(_file(farm))
    # the longest not asked come first: what is left over this time has its turn the next time
    order = sorted(present, key=lambda record: remembered[record.id].at if record.id in remembered else 0)
    trees = states((record.worktree_path for record in order), timeout=bound)
    apart = _apart(farm, present, bound)
    now = time.time()
    found = {
        record.id: _joined(tree, divergence, now)
        for record, divergence in zip(present, apart, strict=True)
        if (tree := trees[record.worktree_path]) is not None
    }
    _remember(_file(farm), remembered | found, {record.id for record in farm.registry.read().values()})
    return {record.id: state for record in present if (state := (remembered | found).get(record.id))}


def _apart(farm: Farm, records: Sequence[BuilderRecord], bound: float) -> list[Divergence | None]:
    pairs = [(f"refs/heads/{record.branch}", record.base) for record in records]
    try:
        return ahead_behind(farm.repository, pairs, timeout=bound)
    except AgentFarmError:  # a base that is gone, or no answer in time: not known
        return [None for _ in records]


def _joined(tree: TreeState, apart: Divergence | None, now: float) -> GitState:
    return GitState(
        dirty=len(tree.dirty),
        untracked=len(tree.untracked),
        ahead=apart.ahead if apart else None,
        behind=apart.behind if apart else None,
        at=now,
    )


def _file(farm: Farm) -> Path:
    return farm.paths.state / "git-states.json"


def _load(file: Path) -> dict[str, GitState]:
    try:
        return {id: GitState(**state) for id, state in json.loads(file.read_bytes()).items()}
    except (OSError, ValueError, TypeError, AttributeError):
        return {}  # a cache: what cannot be read is asked again


def _remember(file: Path, found: dict[str, GitState], ids: set[str]) -> None:
    kept = {id: state.to_json() for id, state in found.items() if id in ids}
    try:
        make_directory(file.parent)
        replace_file(file, json.dumps(kept))
    except AgentFarmError:  # a full or read-only disk: status works without a memory
        pass
