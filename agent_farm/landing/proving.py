"""Proves a builder's work: asks the checks and the diff, not the builder."""

from __future__ import annotations

import os
import time
from collections.abc import Sequence

import msgspec
from msgspec import Struct

from agent_farm.builders.proof import CheckFacts, Flag, Proof, ProofState
from agent_farm.builders.record import BuilderRecord
from agent_farm.documents import store
from agent_farm.errors import NotFound
from agent_farm.farm.declared_checks import Check, declared_checks
from agent_farm.farm.farm import Farm
from agent_farm.git.git_process import git_deadline
from agent_farm.git.merge_trees import loose_commit, merged_trees
from agent_farm.git.remotes import find_base
from agent_farm.git.showing import diff_commits, start_of_work
from agent_farm.landing.check_scripts import scripts_of
from agent_farm.landing.flags import TaskScope, flags_of
from agent_farm.landing.verdicts import CheckResult, Reuse, verdict_of
from agent_farm.landing.work import find_work
from agent_farm.launch import as_command

_MOST_DIFF = 20_000_000  # a longer diff is not searched for flags
_NAMED = 20
# Far more than git needs; a FIFO named `.gitignore` would make it wait for ever.
_SECONDS = 300.0


class Target(Struct, frozen=True):
    """The branch that work is meant for, and the commit it is at."""

    name: str
    ref: str
    commit: str


def find_target(farm: Farm, record: BuilderRecord) -> Target:
    """The builder's base, or the local branch that tracks it; for a tag or commit, the main checkout's."""
    base = find_base(farm.repository, record.base)
    if not base.exists:
        raise NotFound(
            f"{record.base}, the base of {record.id}, is gone",
            hint=as_command("af", "diff", record.id),
        )
    if base.is_branch:
        name = base.branches[0] if base.branches else record.base
        ref = f"refs/heads/{name}" if base.branches else base.refs[0]
        return Target(name, ref, farm.repository.resolve_commit(ref))
    head = farm.repository.head(farm.root)
    ref = f"refs/heads/{head.branch}" if head.branch else head.commit
    return Target(head.branch or head.commit[:12], ref, head.commit)


def require_checks(farm: Farm) -> tuple[Check, ...]:
    checks = declared_checks(farm)
    if not checks:
        raise NotFound(
            "No check is declared",
            why="Without a check nothing can be proven; `af merge` lands work as it is.",
            hint=as_command("af", "config", "set", "check.command", "make test"),
        )
    return checks


def prove(farm: Farm, record: BuilderRecord, *, reuse: Reuse = "all") -> Proof:
    """Judge what its worktree has checked out, and store the proof."""
    checks = require_checks(farm)
    with git_deadline(_SECONDS):
        proof, both = _before_checks(farm, record, checks)
    if both is not None:
        verdict = verdict_of(farm, both, checks, reuse=reuse, run=record.run)
        red = verdict.failed
        proof = msgspec.structs.replace(
            proof,
            state="red" if red else "flagged" if proof.flags else "proven",
            reason=f"{red.called} {red.told}" if red else None,
            tree=verdict.tree,
            checks=tuple(map(_facts, verdict.results)),
        )
    if farm.run(record.id).directory.is_dir():
        store(farm.run(record.id).proof, proof)
    return proof


def _before_checks(farm: Farm, record: BuilderRecord, checks: Sequence[Check]) -> tuple[Proof, str | None]:
    """The proof, if something counts against the work already; and the merge to check, if there is one."""
    found, target = find_work(farm, record), find_target(farm, record)
    tip = found.work.tip
    bases = find_base(farm.repository, record.base).refs
    start = start_of_work(farm.repository, record.base_commit, tip, bases)
    diff = diff_commits(farm.repository, start, tip, whole=True)
    flags = _flags(farm, record, checks, target, diff)
    at = time.time()

    def judged(state: ProofState, reason: str | None, evidence: Sequence[str] = ()) -> Proof:
        shown = tuple(evidence[:_NAMED])
        return Proof(state, reason, tip, target.name, target.ref, target.commit, None, at, (), flags, shown)

    if tip == record.base_commit:
        return judged("empty", "it has committed nothing"), None
    if not diff:
        return judged("empty", "its commits change nothing"), None
    if found.left_behind:
        return judged("uncommitted", f"not committed: {_some(found.left_behind)}", found.left_behind), None
    merged = merged_trees(farm.repository, [(target.commit, tip)])[0]
    if merged.conflicts:
        where = f"conflicts with {target.name} in {_some(merged.conflicts)}"
        return judged("conflicts", where, merged.conflicts), None
    unchecked = judged("red", "no check has run")
    return unchecked, loose_commit(farm.repository, merged.tree, target.commit, tip)


def _flags(
    farm: Farm, record: BuilderRecord, checks: Sequence[Check], target: Target, diff: str
) -> tuple[Flag, ...]:
    if len(diff) > _MOST_DIFF:
        return (Flag("too-large", "", 0, f"the diff has {len(diff)} characters, and was not searched"),)
    scripts = scripts_of(farm, target.commit, [check.command for check in checks])
    return flags_of(diff, TaskScope(record.files, scripts))


def _facts(result: CheckResult) -> CheckFacts:
    known = msgspec.to_builtins(result, enc_hook=os.fspath)
    return msgspec.convert({**known, "passed": result.passed}, CheckFacts)


def _some(files: Sequence[str]) -> str:
    more = f" and {len(files) - 3} more" if len(files) > 3 else ""
    return ", ".join(files[:3]) + more
