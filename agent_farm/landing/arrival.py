"""Whether a builder's work has landed, for builders that wait for it; git/landed.py decides."""

from __future__ import annotations

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.trash import Trashed, list_kept
from agent_farm.git.changes import tree_state
from agent_farm.git.landed import have_landed
from agent_farm.git.remotes import upstreams_of

_SECONDS = 20.0


def arrived_base(farm: Farm, id: str, base: str) -> str | None:
    """Where to start from what the builder `id` has landed: the base, or the branch that the base tracks.

    None if it has not landed on either, has made nothing yet, or has uncommitted files; in doubt it counts as
    not landed.
    """
    tips, begin = _work_of(farm, id)
    if not tips or tips == {begin}:
        return None
    follows = upstreams_of(farm.repository, [base]).get(base)
    for name, ref in ((base, base), (follows.name, f"refs/remotes/{follows.name}") if follows else ("", "")):
        if name and have_landed(farm.repository, sorted(tips), [_commit(farm, ref)], timeout=_SECONDS):
            return name
    return None


def base_of(farm: Farm, id: str) -> str | None:
    """The branch that the work of `id` is meant for; None for an unknown builder."""
    record = farm.registry.read().get(id)
    if record is None:
        kept = _removed(farm, id)
        return kept.record.base if kept else None
    return record.base


def commits_of(farm: Farm, id: str) -> set[str]:
    """The commits its work is at, whether or not they have landed."""
    return _work_of(farm, id, whole=False)[0]


def _commit(farm: Farm, ref: str) -> str:
    return farm.repository.resolve_commit(ref)


def _removed(farm: Farm, id: str) -> Trashed | None:
    return next((one for one in list_kept(farm) if one.record.id == id), None)


def _work_of(farm: Farm, id: str, *, whole: bool = True) -> tuple[set[str], str]:
    """The commits its work is at, and the one where it began; works for a removed builder, too.

    With `whole`, there are none while it has uncommitted files.
    """
    record = farm.registry.read().get(id)
    if record is None:
        kept = _removed(farm, id)
        if kept is None:
            return set(), ""
        return {tip for tip in (kept.head, kept.tip) if tip}, kept.record.base_commit
    if not record.is_made:
        return set(), ""
    try:
        tree = farm.tree_if_there(record)
        state = tree_state(tree) if tree else None
    except AgentFarmError:
        return set(), ""
    if whole and state is not None and (state.dirty or state.untracked or state.operation):
        return set(), ""
    tips = {state.head if state else None, farm.repository.branch_commit(record.branch)}
    return {tip for tip in tips if tip}, record.base_commit
