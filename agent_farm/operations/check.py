"""`check`: prove or refute what builders claim, on their work merged into its target."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.builders.proof import Proof, ProofState
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import agree_to_checks
from agent_farm.landing.proving import prove, require_checks
from agent_farm.operations.builders import SomeBuilders, Yes, choose_each, each
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request, gathered
from agent_farm.own_files import read_own

_TAIL = 30  # lines of the log of a red check
_LINE = 400


class CheckRequest(Request):
    ids: SomeBuilders
    again: Annotated[bool, Meta(description="Run the checks again even if their result is known")] = False
    log: Annotated[bool, Meta(description="Include the whole output of each check")] = False
    yes: Yes = False


class CheckOutput(Answer):
    """`text` is everything a check printed, or only the end if it is red."""

    check: str
    text: str


class BuilderChecked(Answer):
    id: str
    state: ProofState
    reason: str | None
    proof: Proof
    output: tuple[CheckOutput, ...]


class AllChecked(OfSeveral):
    builders: tuple[BuilderChecked, ...]

    @property
    def exit_code(self) -> int:
        red = any(one.state != "proven" for one in self.builders)
        return max(int(red), super().exit_code)


@in_parts(
    "Prove what builders have committed: run the checks on it, merged into its target",
    gathered(AllChecked, builders=BuilderChecked, failed=Failure),
    effect="changes",
    repeats=True,
    pool="check",
    details="Runs what [check] declares in a clean worktree with the work merged into its target, and"
    " looks in the diff for changes that weaken the checks. Results are kept: the same tree is"
    " not checked twice.",
    elsewhere="home",
)
def check(context: Context, request: CheckRequest) -> Iterator[BuilderChecked | Failure]:
    farm = context.farm
    chosen, unknown = choose_each(context, request.ids)
    yield from unknown
    agree_to_checks(farm, require_checks(farm), yes=request.yes, ask=context.ask)
    yield from each(chosen, partial(_one, context, request), alone=not unknown, otherwise="was not checked")


def _one(context: Context, request: CheckRequest, record: BuilderRecord) -> BuilderChecked:
    proof = prove(context.farm, record, reuse="none" if request.again else "all")
    return BuilderChecked(
        record.id, proof.state, proof.reason, proof, tuple(_output(proof, whole=request.log))
    )


def _output(proof: Proof, *, whole: bool) -> Iterator[CheckOutput]:
    for check in proof.checks:
        if whole or not check.passed:
            with suppress(OSError, AgentFarmError):
                text = read_own(Path(check.log)).decode("utf-8", "replace")
                yield CheckOutput(check.name, text if whole else _end(text))


def _end(text: str) -> str:
    return "\n".join(line[:_LINE] for line in text.splitlines()[-_TAIL:])
