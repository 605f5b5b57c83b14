"""`runtimes`: what AI CLIs there are, and which of them can be used here."""

from __future__ import annotations

import os

from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.runtimes.external_config import runtime_file_problem
from agent_farm.runtimes.survey import survey_runtimes


class Runtimes(Request):
    pass


class RuntimeFound(Answer):
    """`problem` is why it cannot be used, null when it can."""

    name: str
    title: str
    version: str | None
    problem: str | None
    usable: bool


class AllRuntimes(Answer):
    """`problem` is what is wrong with the repository's agent_runtime.json."""

    runtimes: tuple[RuntimeFound, ...]
    problem: str | None = None


def _survey(context: Context, request: Runtimes) -> AllRuntimes:
    farm = farm_if_there(context)
    root, settings = (farm.root, farm.settings) if farm else (None, None)
    problem = runtime_file_problem(root) if root else None
    return AllRuntimes(
        runtimes=tuple(
            RuntimeFound(one.name, one.title, one.version, one.problem, usable=one.problem is None)
            for one in survey_runtimes(os.environ, root, settings)
        ),
        problem=problem.sentence if problem else None,
    )


def farm_if_there(context: Context) -> Farm | None:
    """Outside a repository the shipped runtimes can be looked at all the same."""
    try:
        return context.farm
    except AgentFarmError:
        return None


OPERATION = Operation(
    "runtimes",
    "List the runtimes: version, whether each is usable, and why not",
    Runtimes,
    AllRuntimes,
    single(_survey),
    only,
    effect="reads",
    tolerant=True,
)
