"""`landing`: preview what a merge would land, where, and what it would leave behind."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta

from agent_farm.farm.declared_checks import declared_checks
from agent_farm.git.landed import Commit, unlanded_commits
from agent_farm.landing.place import landing_place
from agent_farm.landing.work import find_work
from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Request


class Landing(Request):
    id: BuilderId


class Foreseen(Answer):
    """`work` is what the worktree has checked out, `into` the branch it would land on."""

    id: str
    work: str
    into: str
    commits: tuple[Commit, ...]
    left_behind: Annotated[tuple[str, ...], Meta(description="Uncommitted files, which do not land")]
    checks: Annotated[
        tuple[str, ...], Meta(description="Commands that its work has to pass in the landing queue")
    ]


@reads("Show what a merge would land, where, and what it would leave behind", elsewhere="home")
def landing(context: Context, request: Landing) -> Foreseen:
    farm = context.farm
    record = choose(context, request.id)
    found = find_work(farm, record)
    head = landing_place(farm).head()
    commits = unlanded_commits(farm.repository, [found.work.tip], [head.commit])
    return Foreseen(
        id=record.id,
        work=found.work.name,
        into=head.branch or head.commit[:12],
        commits=tuple(commits),
        left_behind=tuple(found.left_behind),
        checks=tuple(check.command for check in declared_checks(farm)),
    )
