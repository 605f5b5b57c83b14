"""`af merge`: lands a builder's work on the branch of the current checkout, or changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import read_status
from agent_farm.farm.locks import hold
from agent_farm.farm.own_events import note
from agent_farm.git.checkout import Checkout
from agent_farm.git.landing_hooks import HookRefused, Hooks, find_hooks
from agent_farm.git.merging import MergeConflicts, NoFastForward, Strategy, merge_commit
from agent_farm.git.settling import settle_interrupted_move
from agent_farm.landing.marks import mark_landed
from agent_farm.landing.place import Tell, landing_lock, landing_place, require_base
from agent_farm.landing.review import LandingReview
from agent_farm.landing.work import find_work
from agent_farm.launch import as_command
from agent_farm.shield import Shield

_NAMED = 5  # files that a message to a builder names


class Merged(Struct, frozen=True):
    """`branch` is what the worktree had checked out, null when HEAD is detached; `switched`: it is not its
    own.

    `before` and `after` are commits of the branch `into`, equal if there was nothing to land. `left_behind`
    lists uncommitted files, which did not land. `notes` has the hooks' output, and what became of an earlier,
    interrupted merge. `hint` is the next command.
    """

    id: str
    branch: str | None
    switched: bool
    into: str
    checkout: str
    before: str
    after: str
    left_behind: tuple[str, ...]
    notes: tuple[str, ...]
    hint: str | None = None


def land(
    farm: Farm,
    record: BuilderRecord,
    *,
    strategy: Strategy,
    shield: Shield,
    message: str | None = None,
    here: bool = False,
    tell: Tell | None = None,
) -> Merged:
    """Land what the builder's worktree has checked out on the branch of a checkout, or change nothing.

    `here` ignores the builder's base. `tell` gets a message if the user has to wait, and the checks' output.
    """
    checkout = landing_place(farm)
    hooks = find_hooks(checkout, never_below=farm.paths.worktrees)
    notes: list[str] = []
    with ExitStack() as stack:
        stack.enter_context(_with_notes(notes))
        with ExitStack() as held:
            lock = held.enter_context(landing_lock(farm, checkout, tell=tell))
            record = held.enter_context(hold(farm, record.id))
            if settled := settle_interrupted_move(checkout):
                notes.append(f"A merge was cut short before: {settled.told}")
            head = checkout.head()
            require_base(farm, record, checkout, head, here=here)
            found = find_work(farm, record)
            review = LandingReview(farm, checkout, record, found, hooks, notes, tell)
            held.callback(review.trial.close)
            with _with_next_command(farm, record, checkout, strategy):
                merged = merge_commit(
                    farm.repository,
                    checkout,
                    found.work,
                    strategy,
                    message,
                    head=head,
                    review=review,
                    hooks=hooks,
                    fds=[lock],
                    shield=shield,
                )
            note(farm, record, "merged", f"into {merged.into}, now {merged.after[:12]}")
        notes += mark_landed(farm, record, checkout.path)
        if merged.before != merged.after:
            notes += _run_afterwards(hooks, strategy)
    switched = found.branch != record.branch
    moved = (merged.into, str(checkout.path), merged.before, merged.after)
    return Merged(record.id, found.branch, switched, *moved, found.left_behind, tuple(notes))


@contextmanager
def _with_notes(notes: Sequence[str]) -> Iterator[None]:
    try:
        yield
    except AgentFarmError as error:
        error.evidence = (*error.evidence, *notes)
        raise


@contextmanager
def _with_next_command(
    farm: Farm, record: BuilderRecord, checkout: Checkout, strategy: Strategy
) -> Iterator[None]:
    try:
        yield
    except MergeConflicts as error:
        error.hint = _resolving(farm, record, checkout, strategy, error.evidence)
        raise
    except NoFastForward as error:
        error.hint = as_command("af", "merge", "--strategy", "merge", record.id)
        raise


def _run_afterwards(hooks: Hooks, strategy: Strategy) -> list[str]:
    """The work has landed, whatever this hook returns."""
    try:
        return hooks.run("post-merge", "1" if strategy == "squash" else "0")
    except HookRefused as error:
        return [error.what, *error.evidence]


def _resolving(
    farm: Farm, record: BuilderRecord, checkout: Checkout, strategy: Strategy, files: Sequence[str]
) -> str:
    """The command that asks the builder to resolve the conflict, since it knows the work."""
    branch = checkout.head().branch or record.base
    how = f"Rebase your branch onto {branch}" if strategy == "rebase" else f"Merge {branch} into your branch"
    names = [file for file in files if file.isprintable()][:_NAMED]
    more = [f"{len(files) - len(names)} more"] if len(files) > len(names) else []
    what = f"{how} and resolve the conflicts in {', '.join([*names, *more])}"
    send = as_command("af", "send", record.id, what)
    if read_status(farm, record).is_finished:
        return f"{as_command('af', 'resume', record.id)} && {send}"
    return send
