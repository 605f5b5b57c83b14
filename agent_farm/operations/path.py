"""`path`: where a builder works."""

from __future__ import annotations

from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class Path(Request):
    id: BuilderId


class Place(Answer):
    id: str
    path: str


def _find(context: Context, request: Path) -> Place:
    record = choose(context, request.id)
    return Place(id=record.id, path=record.worktree)


OPERATION = Operation(
    "path",
    "Print the absolute path of a builder's worktree",
    Path,
    Place,
    single(_find),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
)
