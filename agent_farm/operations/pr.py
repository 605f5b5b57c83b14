"""`pr`, `pr_refresh`: builders' work as pull requests on GitHub or GitLab, and what became of them."""

from __future__ import annotations

import time
from collections.abc import Iterator
from functools import partial
from typing import Annotated, Literal, cast

from msgspec import Meta, structs

from agent_farm.builders.pull_request import PullRequest
from agent_farm.builders.record import BuilderRecord
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import list_builders
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.forge.forge_cli import ForgeCli, choose_forge
from agent_farm.forge.pull_requests import (
    PullRequestWanted,
    open_request,
    request_numbered,
    requests_of,
    update_request,
)
from agent_farm.git.checkout import checkout_at
from agent_farm.git.entries import changes_between
from agent_farm.git.landing_hooks import find_hooks
from agent_farm.git.pushing import PushRejected, push_commit, remote_tip
from agent_farm.git.remotes import find_base, forge_url, home_remote, upstreams_of
from agent_farm.landing.work import FoundWork, find_work, require_none_of_afs
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderIds, SomeBuilders, choose_each, choose_each_or_all, each
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, OfSeveral, Request, gathered
from agent_farm.operations.pr_text import body_of


class Pr(Request):
    ids: SomeBuilders
    draft: Annotated[bool, Meta(description="Open the pull request as a draft")] = False


class PrRefresh(Request):
    ids: BuilderIds = ()


class PullRequestMade(Answer):
    """`did`: opened, updated, or none if the forge has merged or closed exactly this commit already.

    `left_behind` lists uncommitted files, which are not in it.
    """

    id: str
    did: Literal["opened", "updated", "none", "looked"]
    pull_request: PullRequest
    left_behind: tuple[str, ...] = ()


class AllAsked(OfSeveral):
    pull_requests: tuple[PullRequestMade, ...]


_collect = gathered(AllAsked, pull_requests=PullRequestMade, failed=Failure)


@in_parts(
    "Push what builders have committed, and open or update pull requests for it on GitHub or GitLab",
    _collect,
    effect="changes",
    repeats=True,
    outside=True,
    pool="pr",
    details="Uses `gh` or `glab`; the text has the task, the commits and the proof. Commits that somebody"
    " else pushed to the branch are never overwritten.",
    elsewhere="home",
)
def pr(context: Context, request: Pr) -> Iterator[PullRequestMade | Failure]:
    chosen, unknown = choose_each(context, request.ids)
    yield from unknown
    act = partial(_ask, context, request)
    yield from each(chosen, act, alone=not unknown, otherwise="has no pull request")


def _ask(context: Context, request: Pr, record: BuilderRecord) -> PullRequestMade:
    """Holds the builder's lock, because two at once would open two pull requests."""
    farm = context.farm
    with hold(farm, record.id) as record:
        found = find_work(farm, record)
        _require_work(record, found)
        into, remote = _meant_for(farm, record)
        cli = _forge_of(farm, into)
        branch, tip = record.branch, found.work.tip
        checkout = checkout_at(farm.repository, farm.root)
        require_none_of_afs(record, changes_between(checkout, record.base_commit, tip))
        known = requests_of(cli, branch)
        open_one = next((one for one in known if one.state == "open"), None)
        ended = next((one for one in known if one.head == tip), None)
        before = load_if_whole(farm.run(record.id).pull_request, PullRequest)
        pushed = before.pushed if before and (before.remote, before.branch) == (remote, branch) else ()
        blank = PullRequest(
            cast(Literal["gh", "glab"], cli.name),
            None,
            "",
            "open",
            None,
            remote,
            branch,
            into,
            into,
            pushed,
            time.time(),
        )
        if open_one is None and ended is not None:
            return PullRequestMade(record.id, "none", _kept(farm, record, blank, ended), found.left_behind)
        context.tell(f"Pushing {branch} to {remote}")
        pushed = _push(farm, record, blank, tip)
        title = found.work.subject.partition("\n")[0]
        body = body_of(farm, record, tip, list_builders(farm, [record.id], fresh=True)[0].proof)
        _write(cli, open_one, branch, into, title, body, draft=request.draft)
        one = next((one for one in requests_of(cli, branch) if one.state == "open"), None)
        if one is None:
            raise AgentFarmError(f"{cli.name} finds no open pull request of {branch} after opening one")
        kept = _kept(farm, record, structs.replace(blank, pushed=pushed), one)
        note(farm, record, "pull-request", kept.url)
        return PullRequestMade(record.id, "updated" if open_one else "opened", kept, found.left_behind)


def _require_work(record: BuilderRecord, found: FoundWork) -> None:
    if found.work.tip == record.base_commit:
        raise NotFound(
            f"{record.id} has committed nothing",
            why="A pull request is made of commits.",
            hint=as_command("af", "send", record.id, "Commit your work"),
        )


def _meant_for(farm: Farm, record: BuilderRecord) -> tuple[str, str]:
    """The branch on the forge that the work is meant for, and the remote that has it."""
    base = find_base(farm.repository, record.base)
    if not base.is_branch:
        raise NotFound(
            f"{record.id} began from {record.base}, which is not a branch",
            why="A pull request needs a target branch.",
            hint=as_command("af", "merge", "--here", record.id),
        )
    local = base.branches[0] if base.branches else None
    remote = home_remote(farm.repository, local)
    if remote is None:
        raise NotFound(
            "The repository has no remote",
            why="A pull request is opened at the remote's forge.",
            hint="git remote add origin URL",
        )
    follows = upstreams_of(farm.repository, [local]).get(local) if local else None
    name = follows.name if follows else record.base
    return name.removeprefix(f"{remote}/"), remote


def _forge_of(farm: Farm, branch: str | None) -> ForgeCli:
    return choose_forge(
        farm.root, forge_url(farm.repository, branch), setting=farm.settings.text("forge.command")
    )


def _push(farm: Farm, record: BuilderRecord, intent: PullRequest, tip: str) -> tuple[str, ...]:
    """Records what af pushes before it does: a kill must not make that look like somebody else's push."""
    there = remote_tip(farm.repository, intent.remote, intent.branch)
    if there is not None and there != tip and there not in intent.pushed:
        raise PushRejected(
            f"{intent.branch} on {intent.remote} is at {there[:12]}, which af has not pushed",
            why="Nothing was overwritten. Have the builder merge those commits, or delete the branch there.",
            hint=as_command("git", "fetch", intent.remote),
        )
    pushed = tuple(dict.fromkeys(commit for commit in (there, tip) if commit))
    store(farm.run(record.id).pull_request, structs.replace(intent, pushed=pushed))
    if there != tip:
        checkout = checkout_at(farm.repository, farm.root)
        hooks = find_hooks(checkout, never_below=farm.paths.worktrees).directory
        push_commit(farm.repository, intent.remote, tip, intent.branch, seen=there, hooks=hooks)
    return (tip,)


def _write(
    cli: ForgeCli,
    found: PullRequestWanted | None,
    branch: str,
    into: str,
    title: str,
    body: str,
    *,
    draft: bool,
) -> None:
    if found is None:
        open_request(cli, branch, into, title, body, draft=draft)
    else:
        update_request(cli, found.number, title, body)


def _kept(farm: Farm, record: BuilderRecord, before: PullRequest, found: PullRequestWanted) -> PullRequest:
    now = structs.replace(
        before,
        number=found.number,
        url=found.url,
        state=found.state,
        head=found.head,
        into=found.into,
        at=time.time(),
    )
    store(farm.run(record.id).pull_request, now)
    return now


@in_parts(
    "Ask the forge what became of builders' pull requests; without ids, of all",
    _collect,
    effect="changes",
    repeats=True,
    outside=True,
    pool="pr",
    details="Work that was merged there, even squashed, counts as landed if no commit was made since.",
    elsewhere="fetched",
)
def pr_refresh(context: Context, request: PrRefresh) -> Iterator[PullRequestMade | Failure]:
    farm = context.farm
    records, unknown = choose_each_or_all(context, request.ids)
    yield from unknown
    known = {one.id: load_if_whole(farm.run(one.id).pull_request, PullRequest) for one in records}
    asked = [record for record in records if request.ids or known[record.id]]
    yield from each(asked, partial(_look, farm, known), alone=bool(request.ids) and not unknown)


def _look(farm: Farm, known: dict[str, PullRequest | None], record: BuilderRecord) -> PullRequestMade:
    before = known[record.id]
    if before is None or before.number is None:
        raise NotFound(f"{record.id} has no pull request", hint=as_command("af", "pr", record.id))
    found = request_numbered(_forge_of(farm, before.base), before.number)
    with hold(farm, record.id):
        return PullRequestMade(record.id, "looked", _kept(farm, record, before, found))
