"""Git's view of the builders' worktrees: asked in parallel within a bound, remembered beyond it."""

from __future__ import annotations

import json
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Literal

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import AgentFarmError, DamagedFile
from agent_farm.farm.farm import Farm
from agent_farm.farm.landings import Landing, read_landings
from agent_farm.git.changes import TreeState, states
from agent_farm.git.divergence import Divergence, ahead_behind, resolve_commits
from agent_farm.own_files import read_own

# A status that people watch answers in time; what was not read by then is shown with its age.
BOUND_SECONDS = 0.5
# Many worktrees use up the bound; this part of it is added, so that landings have their turn all the same.
_LANDINGS_PART = 0.2
FRESH_SECONDS = 600.0


Missing = Literal["base", "branch"]


@dataclass(frozen=True, slots=True)
class GitState:
    """`at` is when it was read: seconds since the epoch.

    `missing` is what is gone, so that `ahead` and `behind` cannot be known. `landed` says whether every
    commit is on the base, the main checkout's HEAD or a remote, in whatever form; None where nobody knows.
    """

    dirty: int
    untracked: int
    ahead: int | None
    behind: int | None
    at: float
    missing: Missing | None = None
    landed: bool | None = None
    has_commits: bool = False
    landed_of: str = ""
    landed_at: float = 0.0

    def to_json(self) -> dict[str, Any]:
        """Without what only the next look at it needs."""
        shown = ("dirty", "untracked", "ahead", "behind", "missing", "landed", "at")
        return {name: getattr(self, name) for name in shown}


def git_states(farm: Farm, records: Sequence[BuilderRecord], *, fresh: bool = False) -> dict[str, GitState]:
    """The state of each worktree that is there; an older one where it could not be read in time."""
    present = [record for record in records if record.worktree_path.is_dir()]
    if not present:
        return {}
    begin, bound = time.monotonic(), FRESH_SECONDS if fresh else BOUND_SECONDS
    remembered = _load(_file(farm))
    # the longest not asked come first: what is left over this time has its turn the next time
    order = sorted(present, key=lambda record: remembered[record.id].at if record.id in remembered else 0)
    answers = states((record.worktree_path for record in order), timeout=bound)
    trees = {record.id: tree for record in present if (tree := answers[record.worktree_path]) is not None}
    apart = _apart(farm, present, bound)
    before = {id: Landing(state.landed, state.landed_of, state.landed_at) for id, state in remembered.items()}
    left = max(bound * _LANDINGS_PART, bound - (time.monotonic() - begin))
    landings = read_landings(farm, present, trees, before, seconds=left)
    now = time.time()
    found = {
        record.id: _joined(record, trees[record.id], apart[record.id], landings.get(record.id), now)
        for record in present
        if record.id in trees
    }
    _remember(_file(farm), remembered | found, {record.id for record in farm.registry.read().values()})
    return {record.id: state for record in present if (state := (remembered | found).get(record.id))}


def _apart(
    farm: Farm, records: Sequence[BuilderRecord], bound: float
) -> dict[str, Divergence | Missing | None]:
    """How far each is from its base, or which of the two is gone; None where there was no answer in time."""
    pairs = {record.id: (f"refs/heads/{record.branch}", record.base) for record in records}
    try:
        answers = dict(
            zip(pairs, ahead_behind(farm.repository, list(pairs.values()), timeout=bound), strict=True)
        )
        unknown = [id for id, answer in answers.items() if answer is None]
        if not unknown:
            return dict(answers)
        names = {name for id in unknown for name in pairs[id]}
        there = resolve_commits(farm.repository, names, timeout=bound)
    except AgentFarmError:
        return {record.id: None for record in records}
    gone = {id: _gone(*(there[name] for name in pairs[id])) for id in unknown}
    return answers | gone


def _gone(branch: str | None, base: str | None) -> Missing | None:
    if branch is None:
        return "branch"
    return "base" if base is None else None


def _joined(
    record: BuilderRecord,
    tree: TreeState,
    apart: Divergence | Missing | None,
    landing: Landing | None,
    now: float,
) -> GitState:
    known = apart if isinstance(apart, Divergence) else None
    landing = landing or Landing()
    return GitState(
        dirty=len(tree.dirty),
        untracked=len(tree.untracked),
        ahead=known.ahead if known else None,
        behind=known.behind if known else None,
        at=now,
        missing=apart if isinstance(apart, str) else None,
        landed=landing.landed,
        has_commits=tree.head not in (None, record.base_commit),
        landed_of=landing.asked_of,
        landed_at=landing.at,
    )


def _file(farm: Farm) -> Path:
    return farm.paths.state / "git-states.json"


def _load(file: Path) -> dict[str, GitState]:
    try:
        return {id: GitState(**state) for id, state in json.loads(read_own(file)).items()}
    except (OSError, DamagedFile, ValueError, TypeError, AttributeError, RecursionError):
        return {}  # a cache: what cannot be read is asked again


def _remember(file: Path, found: dict[str, GitState], ids: set[str]) -> None:
    kept = {id: asdict(state) for id, state in found.items() if id in ids}
    try:
        make_directory(file.parent)
        replace_file(file, json.dumps(kept))
    except AgentFarmError:  # a full or read-only disk: status works without a memory
        pass
