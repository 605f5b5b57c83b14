"""Stored proofs of builders' work, compared with the present: one git process for all of them."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from contextlib import suppress

from agent_farm.builders.proof import Proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.documents import load_if_whole
from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import declared_checks
from agent_farm.farm.farm import Farm
from agent_farm.farm.git_state import GitState
from agent_farm.git.divergence import resolve_commits
from agent_farm.git.git_process import git_deadline

_SECONDS = 0.3


def read_proofs(
    farm: Farm, records: Iterable[BuilderRecord], states: Mapping[str, GitState]
) -> dict[str, Proof]:
    """By builder; a proof is stale if the work, the target or the checks have changed since."""
    kept = {record.id: load_if_whole(farm.run(record.id).proof, Proof) for record in records}
    found = {id: proof for id, proof in kept.items() if proof is not None}
    if not found:
        return {}
    targets: dict[str, str | None] = {}
    with suppress(AgentFarmError), git_deadline(_SECONDS):
        refs = {proof.target_ref for proof in found.values()}
        targets = resolve_commits(farm.repository, refs)
    commands = None if farm.settings.problems else [one.command for one in declared_checks(farm)]
    return {id: _now(proof.under(commands), states.get(id), targets) for id, proof in found.items()}


def _now(proof: Proof, state: GitState | None, targets: Mapping[str, str | None]) -> Proof:
    target = targets.get(proof.target_ref)
    if state is None or state.problem is not None:
        return proof.judged_now(work=None, target=target, changed=proof.state == "uncommitted")
    changed = bool(state.dirty or state.untracked)
    return proof.judged_now(work=state.commit, target=target, changed=changed)
