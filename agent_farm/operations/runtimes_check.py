"""`runtimes_check`: one real start of a runtime, locked to a server made for this, and what was seen."""

from __future__ import annotations

import os
import shlex
from typing import Annotated

from msgspec import Meta

from agent_farm.consent import require_consent
from agent_farm.farm.farm import Farm
from agent_farm.operations.builders import Yes
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.operations.runtimes import farm_if_there
from agent_farm.runtimes.check import Finding, check_runtime, require_runtime
from agent_farm.runtimes.origin import agree_by_name, repository_program


class RuntimesCheck(Request):
    name: Annotated[str, Meta(description="Name of a runtime, as in claude-code")]
    yes: Yes = False


class Checked(Answer):
    name: str
    good: bool
    findings: tuple[Finding, ...]

    @property
    def exit_code(self) -> int:
        return 0 if self.good else 1


def _check(context: Context, request: RuntimesCheck) -> Checked:
    farm = farm_if_there(context)
    adapter = require_runtime(request.name, farm.root if farm else None)
    if farm:
        _agree(farm, context, request)
    own = farm.settings.runtime(request.name) if farm else None
    context.tell(f"starting {request.name}; this takes a few seconds")
    report = check_runtime(
        adapter,
        os.environ,
        declared=farm.settings.items("env.pass") if farm else (),
        command=shlex.split(own.command) if own and own.command else None,
        model=own.model if own else None,
    )
    return Checked(report.name, report.good, report.findings)


def _agree(farm: Farm, context: Context, request: RuntimesCheck) -> None:
    """To what of the repository takes part in this; a person who types its name agrees to its own program."""
    farm.settings.require_good()
    if context.naming_agrees:
        agree_by_name(farm.root, request.name)
    program = repository_program(farm.root, request.name)
    wanted = farm.settings.requests([f"runtimes.{request.name}.command", "env.pass"])
    wanted += [program] if program else []
    require_consent(farm.root, wanted, yes=request.yes, ask=context.ask)


OPERATION = Operation(
    "runtimes_check",
    "Start a runtime headless for real, locked to a server made for this, and say what was seen",
    RuntimesCheck,
    Checked,
    single(_check),
    only,
    effect="changes",
    tolerant=True,
    outside=True,
    details="The model is asked to call the server's one tool, and one thing more in the same conversation,"
    " so this uses the account that the runtime is logged in with.",
)
