"""`runtimes`: list AI CLIs and whether they can be used here; `runtimes_check`: start one for real."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

from msgspec import Meta

from agent_farm.consent import require_consent
from agent_farm.farm.farm import Farm
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import Answer, Context, Nothing, Request
from agent_farm.runtimes.base import require_adapter, require_model
from agent_farm.runtimes.external_config import runtime_file_problem
from agent_farm.runtimes.origin import agree_by_name, repository_program
from agent_farm.runtimes.runtime_check import Finding, check_runtime
from agent_farm.runtimes.survey import RuntimeFound, survey_runtimes


class AllRuntimes(Answer):
    """`problem` says what is wrong with the repository's agent_runtime.json."""

    runtimes: tuple[RuntimeFound, ...]
    problem: str | None = None


@reads("List the runtimes: version, whether each is usable, and why not", pool="runtimes")
def runtimes(context: Context, request: Nothing) -> AllRuntimes:
    farm = context.farm_if_there
    root, settings = (farm.root, farm.settings) if farm else (None, None)
    problem = runtime_file_problem(root) if root else None
    return AllRuntimes(
        runtimes=survey_runtimes(os.environ, root, settings),
        problem=problem.sentence if problem else None,
    )


class RuntimesCheck(Request):
    name: Annotated[str, Meta(description="Name of a runtime, as in claude-code")]
    yes: Yes = False


class RuntimeChecked(Answer):
    name: str
    good: bool
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        return 0 if self.good else 1


@acts(
    "Start a runtime headless for real, locked to a test server, and report what happened",
    tolerant=True,
    outside=True,
    details="The model is asked to call the server's only tool, and then something else in the same"
    " conversation, so this uses the account that the runtime is logged in with.",
)
def runtimes_check(context: Context, request: RuntimesCheck) -> RuntimeChecked:
    farm = context.farm_if_there
    adapter = require_adapter(request.name, farm.root if farm else None, command="af runtimes check")
    if farm:
        _agree(farm, context, request)
    own = farm.settings.runtime(request.name) if farm else None
    context.tell(f"starting {request.name}; this takes a few seconds")
    findings = check_runtime(
        adapter,
        os.environ,
        declared=farm.settings.items("env.pass") if farm else (),
        command=shlex.split(own.command) if own and own.command else None,
        model=require_model(own.model) if own else None,
    )
    return RuntimeChecked(request.name, all(one.good for one in findings), findings)


def _agree(farm: Farm, context: Context, request: RuntimesCheck) -> None:
    """Asks for consent to whatever of the repository takes part; a person who types its runtime's name
    approves it."""
    farm.settings.require_good()
    if context.naming_agrees:
        agree_by_name(farm.root, request.name)
    program = repository_program(farm.root, request.name)
    wanted = farm.settings.requests([f"runtimes.{request.name}.command", "env.pass"])
    wanted += [program] if program else []
    require_consent(farm.root, wanted, yes=request.yes, ask=context.ask)
