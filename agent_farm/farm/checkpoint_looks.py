"""Checkpoints of many builders: a look without a process finds those unchanged since their last one.

The look notices everything committed, staged, reported or said, a new file at the top, and every byte that a
process of the builder writes. For what it does not notice, each builder is read in full from time to time.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Iterator, Mapping
from contextlib import suppress
from functools import partial

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import BUSY, Status
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError
from agent_farm.farm.checkpointing import RUN_FILES, make_checkpoint
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_statuses
from agent_farm.farm.panes import Found, find_panes
from agent_farm.git.asking import side_by_side
from agent_farm.git.checkpoint_making import known_checkpoints
from agent_farm.git.divergence import resolve_commits
from agent_farm.processes import written_below

# With a call every 15 to 20 s, each builder is read in full every five minutes.
_TURNS = 15
_UNSURE = (*BUSY, "creating", "unknown")


class _Looked(Struct, frozen=True):
    """How it looked before it was read in full, at `at`, and the checkpoint made then."""

    look: str
    commit: str
    at: float


class _Looks(Struct, frozen=True):
    of: dict[str, _Looked]


def checkpoint_all(
    farm: Farm, records: Mapping[str, BuilderRecord], there: Collection[str]
) -> dict[str, str | AgentFarmError]:
    """Each builder's current checkpoint; `there` are all builders of the farm."""
    known = known_checkpoints(farm.repository, there)
    panes = find_panes(records.values())
    statuses = read_statuses(farm, records.values(), panes)
    branches = {id: f"refs/heads/{one.branch}" for id, one in records.items()}
    tips = resolve_commits(farm.repository, branches.values()) if records else {}
    written = _written(panes)
    looks = {
        id: _look(farm, one, statuses[id], tips[branches[id]], written.get(id, ""))
        for id, one in records.items()
    }
    before = _load(farm)
    alike = {
        id: one.commit
        for id, one in before.items()
        if id in looks and looks[id] == one.look != "" and known.get(id) == one.commit
    }
    alike = _but_for_their_turn(alike, before)
    questions = {
        id: partial(make_checkpoint, farm, one, statuses[id], tips[branches[id]], known.get(id))
        for id, one in records.items()
        if id not in alike
    }
    now = time.time()
    found = side_by_side(questions) if questions else {}
    after = {id: _Looked(looks[id], one, now) for id, one in found.items() if isinstance(one, str)}
    _store(farm, {id: one for id, one in (before | after).items() if id in there})
    return {id: alike[id] if id in alike else found[id] for id in records}


def _but_for_their_turn(alike: Mapping[str, str], before: Mapping[str, _Looked]) -> dict[str, str]:
    """Without those that have not been read in full for the longest time."""
    order = sorted(alike, key=lambda id: before[id].at)
    return {id: alike[id] for id in order[-(-len(order) // _TURNS) :]}


def _written(panes: Mapping[str, Found]) -> dict[str, str | None]:
    """How much each builder's processes have written by now; None if that is not known."""
    roots = {id: found.pane.pid for id, found in panes.items() if found.pane and not found.pane.dead}
    written = written_below(roots.values()) if roots else {}
    unknown = {id: None for id, found in panes.items() if not found.known}
    return {**unknown, **{id: written.get(pid) for id, pid in roots.items()}}


def _look(farm: Farm, record: BuilderRecord, status: Status, tip: str | None, written: str | None) -> str:
    """How it looks now; "" if it has to be read in full."""
    if status.state in _UNSURE or written is None:
        return ""
    own = f"{farm.repository.common_dir}/worktrees/{record.id}"
    files = (f"{own}/index", f"{own}/HEAD", f"{own}/logs/HEAD", record.worktree, f"{record.worktree}/.git")
    run = f"{farm.paths.run(record.id)}/"
    try:
        seen = [_facts(file) for file in files]
    except OSError:
        return ""
    seen += _facts_of_those_there(run)
    return " ".join([status.state, str(status.cut_short), str(tip), written, *seen])


def _facts(file: str) -> str:
    found = os.lstat(file)
    return f"{found.st_ino}.{found.st_size}.{found.st_mtime_ns}"


def _facts_of_those_there(run: str) -> Iterator[str]:
    for name in RUN_FILES:
        with suppress(OSError):
            yield f"{name}:{_facts(run + name)}"


def _load(farm: Farm) -> dict[str, _Looked]:
    known = load_if_whole(farm.paths.state / "checkpoint-looks.json", _Looks)
    return known.of if known else {}


def _store(farm: Farm, looks: dict[str, _Looked]) -> None:
    with suppress(AgentFarmError):  # on a full disk, the next call reads them in full
        store(farm.paths.state / "checkpoint-looks.json", _Looks(looks))
