"""Git's view of the builders' worktrees: asked side by side in limited time, and remembered."""

from __future__ import annotations

import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Literal

from msgspec import Struct, field
from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import make_directory
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.landing_places import landing_places, merged_commit
from agent_farm.farm.unchanged import find_unchanged, look_at
from agent_farm.git.asking import Asking
from agent_farm.git.changes import Operation, TreeState, tree_state
from agent_farm.git.checkout import BuilderTree, WorktreeMismatch
from agent_farm.git.divergence import Divergence, ahead_behind, resolve_commits
from agent_farm.git.git_process import git_deadline
from agent_farm.git.landed_answers import LandedAnswer, LandedQuestion, landed_answers
from agent_farm.git.remotes import Upstream, upstreams_of

# A watched status must be fast; what was not read in time is shown with its age.
BOUND_SECONDS = 0.5
FRESH_SECONDS = 600.0
# More than git answers in that time; the rest has its turn next time.
_MOST_ASKED = 100
# git is ended by then, to leave time for its output.
_ASKING_PART = 0.9

Missing = Literal["base", "branch"]


class GitState(Struct, frozen=True):
    """`at` is when it was read, in seconds since the epoch.

    `branch` and `commit` are what is checked out; `branch` is None when HEAD is detached. The counts, and
    whether it has landed, are about that commit. `missing` names what is gone, so that `ahead` and `behind`
    cannot be known. `base_behind` counts commits of `base_follows`, the base's upstream, that the base lacks.
    `landed` says whether every commit is on the base, the main checkout's HEAD or a remote, in any form; None
    if that is not known. `problem` says in a word why git was not asked, `reason` in full. `look` and `whole`
    are what `look_at` and `whole_look` found just before git was `asked`.
    """

    dirty: int | None
    untracked: int | None
    ahead: int | None
    behind: int | None
    at: float
    missing: Missing | None = None
    landed: bool | None = None
    branch: str | None = None
    commit: str | None = None
    operation: Operation | None = None
    problem: str | None = None
    reason: str | None = None
    base_follows: str | None = None
    base_behind: int | None = None
    has_commits: bool = False
    landed_of: str = ""
    landed_at: float = 0.0
    look: str = ""
    whole: str = ""
    asked: float = 0.0

    @property
    def head(self) -> str:
        """The name by which git finds its commit, from anywhere in the repository."""
        return f"refs/heads/{self.branch}" if self.branch else self.commit or ""


class _Compared(Struct):
    """What is known about the commits so far, by builder; filled in by one thread while another waits."""

    heads: Mapping[str, str | None] = field(default_factory=dict)
    bases: Mapping[str, str | None] = field(default_factory=dict)
    apart: Mapping[str, Divergence | None] = field(default_factory=dict)
    follows: Mapping[str, Upstream] = field(default_factory=dict)
    answers: Mapping[str, LandedAnswer] = field(default_factory=dict)


def git_states(
    farm: Farm, records: Sequence[BuilderRecord], *, still: Collection[str] = (), fresh: bool = False
) -> dict[str, GitState]:
    """The state of each worktree; an older one if it could not be read in time.

    Of the builders in `still`, which do nothing, most whose files look unchanged are not asked. If path,
    `.git` and git's own record do not name each other, git is not run, and the state says why.
    """
    if not records:
        return {}
    begin, bound = time.monotonic(), FRESH_SECONDS if fresh else BOUND_SECONDS
    remembered = _load(_file(farm))
    looks = {record.id: look_at(farm, record) for record in records}
    quiet = {} if fresh else {id: look for id, look in looks.items() if id in still}
    unchanged = find_unchanged(farm, remembered, quiet)
    left, wholes = unchanged.states, unchanged.wholes
    # those not asked for the longest come first, so that whoever is left out has its turn next time
    order = sorted(
        (record for record in records if record.id not in left),
        key=lambda record: remembered[record.id].at if record.id in remembered else 0,
    )
    trees, found = _own_trees(farm, order if fresh else order[:_MOST_ASKED])
    order = [record for record in order if record.id in trees]
    if order or left:
        states, compared = _ask(farm, records, order, trees, left, remembered, begin, bound)
        now = time.time()
        found |= {
            record.id: _joined(
                record, _seen(states[record.id], now, looks[record.id], wholes.get(record.id, "")), compared
            )
            for record in order
            if record.id in states
        }
        found |= {
            record.id: _as_before(record, left[record.id], compared)
            for record in records
            if record.id in left
        }
    _remember(_file(farm), remembered, found, farm.registry.ids())
    # an earlier problem may have been solved since
    known = {id: state for id, state in remembered.items() if state.problem is None} | found
    return {record.id: known[record.id] for record in records if record.id in known}


def _ask(
    farm: Farm,
    records: Sequence[BuilderRecord],
    order: Sequence[BuilderRecord],
    trees: Mapping[str, BuilderTree],
    left: Mapping[str, GitState],
    remembered: Mapping[str, GitState],
    begin: float,
    bound: float,
) -> tuple[dict[str, TreeState], _Compared]:
    """The worktrees in `order` and, side by side, everybody's commits: what was there in time."""
    compared, until = _Compared(), begin + bound * _ASKING_PART
    with git_deadline(until - time.monotonic()):
        reading = Asking(
            {record.id: partial(tree_state, trees[record.id]) for record in order}, until=begin + bound
        )
        work = partial(_compare, farm, records, trees, left, remembered, compared, until)
        comparing = Asking({"": work}, until=begin + bound)
        states = reading.answers()
        comparing.answers()
    return states, compared


def _own_trees(
    farm: Farm, records: Sequence[BuilderRecord]
) -> tuple[dict[str, BuilderTree], dict[str, GitState]]:
    trees, others = dict[str, BuilderTree](), dict[str, GitState]()
    for record in records:
        try:
            trees[record.id] = farm.tree(record)
        except WorktreeMismatch as error:
            reason = ": ".join(filter(None, (error.what, error.why)))
            others[record.id] = GitState(
                None, None, None, None, time.time(), problem=error.word, reason=reason
            )
    return trees, others


def _compare(
    farm: Farm,
    records: Sequence[BuilderRecord],
    trees: Mapping[str, BuilderTree],
    left: Mapping[str, GitState],
    remembered: Mapping[str, GitState],
    compared: _Compared,
    until: float,
) -> None:
    repository, names = farm.repository, dict[str, tuple[str, str]]()
    for record in records:
        with suppress(AgentFarmError):  # a HEAD that cannot be read
            if record.id in left:
                head = left[record.id].head
            elif record.id in trees:
                head = trees[record.id].checked_out().name
            else:
                continue
            names[record.id] = (head, f"refs/heads/{record.branch}")
    bases = {record.id: record.base for record in records if record.id in names}
    targets = {base: landing_places(farm, base) for base in set(bases.values())}
    merged = {id: [commit] if (commit := merged_commit(farm, id)) else [] for id in names}
    commits = resolve_commits(
        repository, {name for some in (*names.values(), *targets.values(), *merged.values()) for name in some}
    )
    compared.heads = {id: commits[head] for id, (head, _) in names.items()}
    compared.bases = {id: commits.get(base) for id, base in bases.items()}
    pairs = [(compared.heads[id], compared.bases[id]) for id in names]
    compared.apart = dict(zip(names, ahead_behind(repository, pairs), strict=True))
    compared.follows = upstreams_of(repository, set(bases.values()))

    def there(some: Iterable[str]) -> tuple[str, ...]:
        return tuple(sorted({one for name in some if (one := commits[name])}))

    tips = {id: there(some) for id, some in names.items()}
    questions = {
        id: LandedQuestion(some, there([*targets[bases[id]], *merged[id]]))
        for id, some in tips.items()
        if some
    }
    before = {
        id: LandedAnswer(state.landed, state.landed_of, state.landed_at) for id, state in remembered.items()
    }
    compared.answers = landed_answers(repository, questions, before, seconds=until - time.monotonic())


def _seen(tree: TreeState, now: float, look: str, whole: str) -> GitState:
    return GitState(
        dirty=len(tree.dirty),
        untracked=len(tree.untracked),
        ahead=None,
        behind=None,
        at=now,
        branch=tree.branch,
        commit=tree.head,
        operation=tree.operation,
        look=look,
        whole=whole,
        asked=now,
    )


def _as_before(record: BuilderRecord, state: GitState, compared: _Compared) -> GitState:
    """For a worktree that was not asked; its branches are read all the same."""
    if record.id not in compared.heads:
        return state
    moved = compared.heads[record.id] != state.commit
    return replace(state, look="", at=state.asked) if moved else _joined(record, state, compared)


def _joined(record: BuilderRecord, seen: GitState, compared: _Compared) -> GitState:
    # if a commit was made between the two looks, the comparison is about an older one
    same = compared.heads.get(record.id) == seen.commit
    apart = compared.apart.get(record.id) if same else None
    landing = (compared.answers.get(record.id) if same else None) or LandedAnswer()
    follows = compared.follows.get(record.base)
    return replace(
        seen,
        ahead=apart.ahead if apart else None,
        behind=apart.behind if apart else None,
        missing=_missing(record, seen, compared),
        landed=landing.landed,
        base_follows=follows.name if follows else None,
        base_behind=follows.behind if follows else None,
        has_commits=seen.commit not in (None, record.base_commit),
        landed_of=landing.asked_of,
        landed_at=landing.at,
    )


def _missing(record: BuilderRecord, seen: GitState, compared: _Compared) -> Missing | None:
    if seen.commit is None:
        return "branch"
    return "base" if record.id in compared.bases and compared.bases[record.id] is None else None


def _file(farm: Farm) -> Path:
    return farm.paths.state / "git-states.json"


class _Remembered(Struct, frozen=True):
    states: dict[str, GitState]


def _load(file: Path) -> dict[str, GitState]:
    known = load_if_whole(file, _Remembered)
    return known.states if known else {}


def _remember(
    file: Path, before: Mapping[str, GitState], found: Mapping[str, GitState], ids: Collection[str]
) -> None:
    kept = {id: state for id, state in {**before, **found}.items() if id in ids}
    if kept == before:
        return
    with suppress(AgentFarmError):  # on a full or read-only disk, status works without memory
        make_directory(file.parent)
        store(file, _Remembered(kept), lasting=False)  # what a power cut takes is asked again
