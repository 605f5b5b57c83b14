"""`merge`: land what builders have checked out, one after another, until one fails."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Annotated, cast

from msgspec import Meta, structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.farm.checkout_cost import refill_later
from agent_farm.farm.declared_checks import agree_to_checks, checks_of_merge
from agent_farm.farm.farm import Farm
from agent_farm.farm.waiting import start_later
from agent_farm.git.merging import Strategy
from agent_farm.landing.single_merge import Merged, land
from agent_farm.launch import as_command
from agent_farm.operations.builders import BuilderIds, Yes, choose_all, described
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Failure, Request
from agent_farm.operations.prune import Removal
from agent_farm.operations.remove_decided import RemoveDecided, remove_decided
from agent_farm.shield import Shield

How = Annotated[
    Strategy | None, Meta(description="How the commits land; default: [merge] strategy, else merge")
]
Here = Annotated[bool, Meta(description="Land on the branch that is checked out, even if it is not the base")]


class Merge(Request):
    ids: BuilderIds
    strategy: How = None
    message: Annotated[
        str | None,
        Meta(description="Message of the merge or squash commit; default: one that names the task"),
    ] = None
    here: Here = False
    prune: Annotated[bool, Meta(description="Remove each builder that has landed and is not working")] = False
    yes: Yes = False


class Chosen(Answer):
    """The builders to land, in this order."""

    ids: tuple[str, ...]


class NotRemoved(Answer):
    """A builder that landed but was not removed, and why."""

    id: str
    reason: str
    hint: str | None
    evidence: tuple[str, ...] = ()
    certain: Annotated[
        bool, Meta(description="False if its machine broke off, which may have removed it")
    ] = True


class AllMerged(Answer):
    """`failed` is the builder at which it stopped; nothing was changed for that one."""

    merged: tuple[Merged, ...]
    failed: Failure | None = None
    not_tried: tuple[str, ...] = ()
    removed: tuple[Removal, ...] = ()
    kept: tuple[NotRemoved, ...] = ()

    @property
    def exit_code(self) -> int:
        return self.failed.error.exit_code if self.failed else 0


Part = Chosen | Merged | Removal | NotRemoved | Failure


def _collect(parts: Sequence[Part]) -> AllMerged:
    chosen = [id for part in parts if isinstance(part, Chosen) for id in part.ids]
    merged = tuple(part for part in parts if isinstance(part, Merged))
    failed = next((part for part in parts if isinstance(part, Failure)), None)
    told = {*(one.id for one in merged), failed.id if failed else ""}
    return AllMerged(
        merged=merged,
        failed=failed,
        not_tried=tuple(id for id in chosen if id not in told),
        removed=tuple(part for part in parts if isinstance(part, Removal)),
        kept=tuple(part for part in parts if isinstance(part, NotRemoved)),
    )


@in_parts(
    "Land what builders have checked out on the branch checked out here, in the order given",
    _collect,
    effect="destroys",
    details="Here is the main checkout, or your own linked worktree if you are in one. The merge is refused,"
    " and nothing changes, if it would conflict or touch files with uncommitted changes, or if a check"
    " ([merge] check, else those of [check]) or a hook of the repository fails.",
    elsewhere="home",
)
def merge(context: Context, request: Merge) -> Iterator[Part]:
    chosen = {record.id: record for record in choose_all(context, request.ids)}
    yield Chosen(tuple(chosen))
    farm = context.farm
    if checks := checks_of_merge(farm):
        agree_to_checks(farm, checks, yes=request.yes, ask=context.ask)
    done: list[str] = []
    try:
        for record in chosen.values():
            for part in _land(context, record, request):
                if isinstance(part, Merged):
                    done.append(part.id)
                yield part
    except KeyboardInterrupt:
        rest = [id for id in chosen if id not in done]
        context.tell(f"Interrupted.{f' Not landed: {chr(44).join(rest)}' if rest else ''}")
        raise
    except AgentFarmError as error:
        if len(chosen) == 1:
            raise
        yield Failure.of(next(id for id in chosen if id not in done), error)
    finally:
        if done:
            start_later(farm)  # somebody may have waited for one of these
            refill_later(farm)


def _land(context: Context, record: BuilderRecord, request: Merge) -> Iterator[Part]:
    """A Ctrl-C during the last step of a landing is raised after its result was yielded."""
    farm = context.farm
    landed = interruption = None
    try:
        with Shield() as shield:
            landed = land(
                farm,
                record,
                strategy=request.strategy or cast(Strategy, farm.settings.text("merge.strategy")),
                message=request.message,
                here=request.here,
                tell=context.tell,
                shield=shield,
            )
    except KeyboardInterrupt as error:
        interruption = error
    if landed is not None:
        hint = None if request.prune or interruption else _next(farm, landed)
        yield structs.replace(landed, hint=hint)
    if interruption is not None:
        raise interruption
    if request.prune and landed is not None:
        yield _remove(context, landed)


def _next(farm: Farm, landed: Merged) -> str:
    """The command that removes it, or commits what has not landed; `--stop` only if it has not ended."""
    if landed.left_behind:
        return _commit(landed.id)
    (one,) = described(farm, [landed.id])
    return as_command("af", "prune", *([] if one.status.is_finished else ["--stop"]), landed.id)


def _remove(context: Context, landed: Merged) -> Removal | NotRemoved:
    """Remove it, unless something stands against that; then it stays as it was."""
    if landed.left_behind:
        return NotRemoved(landed.id, "some of its work is not committed", _commit(landed.id))
    try:
        found = remove_decided(context, context.farm.require_exact(landed.id), RemoveDecided(landed.id))
    except Unreachable as error:
        return NotRemoved(landed.id, error.sentence, f"af status {landed.id}", certain=not error.began)
    except AgentFarmError as error:
        return NotRemoved(landed.id, error.why or error.what, error.hint, error.evidence)
    assert isinstance(found, Removal)
    return found


def _commit(id: str) -> str:
    return as_command("af", "send", id, "Commit your work")
