"""What a spawn on another machine needs from here, found before anything is sent."""

from __future__ import annotations

from msgspec import Struct, structs

from agent_farm.builders.roles import load_role
from agent_farm.errors import UsageError
from agent_farm.farm.base_commit import Start, choose_start
from agent_farm.farm.farm import Farm
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn_request import Spawn, choose_mode
from agent_farm.operations.spawn_work import Work, find_work, inside_checkout


class Wanted(Struct, frozen=True):
    """What a request amounts to here: the task, the base, and the text of its role."""

    order: Spawn
    work: Work
    start: Start
    role: str | None


def want(context: Context, order: Spawn, last: Wanted | None) -> Wanted:
    farm = context.farm
    _require_possible(farm, order)
    if last and _begins_as(last, order):
        start = last.start
    else:
        fetch = order.fetch or farm.settings.flag("spawn.fetch")
        start = choose_start(farm, order.base, order.branch, fetch=fetch)
    read = last.work.issue_read if last and last.order.issue == order.issue else None
    work, start = find_work(farm, choose_mode(order), start, name=order.name, issue=read)
    role = load_role((context.directory or farm.root) / order.role) if order.role else None
    return Wanted(order, work, start, role)


def _begins_as(last: Wanted, order: Spawn) -> bool:
    same = (last.order.base, last.order.fetch) == (order.base, order.fetch)
    return same and order.branch is None and last.start.existing_branch is None


def as_told(farm: Farm, order: Spawn) -> Spawn:
    """The order with what was decided here; paths start at the top of the checkout."""

    def paths(names: tuple[str, ...], flag: str) -> tuple[str, ...]:
        return tuple(inside_checkout(farm, name, flag) for name in names)

    return structs.replace(
        order,
        on=None,
        base=None,
        branch=None,
        fetch=False,
        name=None,
        role=None,
        no_queue=True,
        files=paths(order.files, "--files"),
        sparse=paths(order.sparse, "--sparse"),
        spec=None if order.spec is None else inside_checkout(farm, order.spec, "--spec"),
    )


def _require_possible(farm: Farm, order: Spawn) -> None:
    """Refuse what needs the queue, the builders or the files of this machine."""
    waits = "The queue of this machine starts what waits, on this machine."
    removes = "It would be removed there before its work has come home."
    here = "af spawn --on local …"
    given = {
        "--after": (order.after is not None, waits, here),
        "--item all": (
            order.item == "all",
            f"Its builders wait for each other. {waits}",
            "af spawn --on … --item ID …",
        ),
        "--spec .beads": (_is_beads(farm, order), "Its issues are claimed and given back here.", here),
        "--stack": (
            order.stack is not None,
            "It is based on a worktree here and is moved along with it.",
            "af spawn --on … --base builder/ID …",
        ),
        "--ephemeral": (order.ephemeral, removes, "af prune --landed"),
        "worktree.uncommitted": (
            farm.settings.flag("worktree.uncommitted"),
            "A builder on another machine only gets commits.",
            "af config set worktree.uncommitted false",
        ),
    }
    if order.branch is not None and order.base is not None:
        raise UsageError("Flags are mutually exclusive: --branch, --base", hint="af spawn --help")
    for name, (is_given, why, hint) in given.items():
        if is_given:
            raise UsageError(f"{name} cannot be combined with --on", why=why, hint=hint)


def _is_beads(farm: Farm, order: Spawn) -> bool:
    return order.spec is not None and inside_checkout(farm, order.spec, "--spec") == ".beads"
