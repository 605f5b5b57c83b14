"""Plans a spawn before anything exists: every mistake a user can make is found here."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_farm.builders.absent_tools import absent_tools
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.roles import choose_role, load_role
from agent_farm.errors import UsageError
from agent_farm.farm.base_commit import Start, choose_start
from agent_farm.farm.chosen_runtime import (
    Chosen,
    agree_to_start,
    choose_runtime,
    include_requests,
    scripts_on_base,
)
from agent_farm.farm.farm import Farm
from agent_farm.farm.preparation import Preparation, preparation_of
from agent_farm.launch import as_command
from agent_farm.operations.builders import choose
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn_request import Spawn, choose_mode
from agent_farm.operations.spawn_work import Work, find_work, inside_checkout
from agent_farm.tmux.usable import require_tmux

if TYPE_CHECKING:
    from agent_farm.forge.issues import Issue


class Plan(Struct, frozen=True):
    """`order` was given in `directory`. `after` is the builder it waits for, `stack` the one on whose work it
    builds.
    """

    order: Spawn
    directory: Path
    work: Work
    start: Start
    chosen: Chosen
    role: Path | None
    role_text: str | None
    subdirectory: str
    preparation: Preparation
    carry: bool
    sparse: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    after: str | None = None
    stack: str | None = None


def preflight(context: Context, order: Spawn, issue: Issue | None = None) -> Plan:
    """Check that everything the spawn depends on exists and is approved; nothing is created yet.

    `issue` is given if it was read already.
    """
    mode, farm = choose_mode(order), context.farm
    require_tmux()
    farm.records()  # heals what a killed spawn left, so that its id and branch are free again
    if order.branch is not None and order.base is not None:
        raise UsageError("Flags are mutually exclusive: --branch, --base", hint="af spawn --help")
    ground = _ground(context, order)
    fetch = order.fetch or farm.settings.flag("spawn.fetch")
    start = choose_start(farm, ground.base, order.branch, fetch=fetch)
    work, start = find_work(farm, mode, start, name=order.name, issue=issue)
    given = (context.directory or farm.root) / order.role if order.role else None
    role = choose_role(farm.root, work.type, protocol=work.protocol_name, given=given, no_role=order.no_role)
    role_text = load_role(role) if role else None
    chosen = choose_runtime(farm, order.runtime, model=order.model, permissions=order.permissions)
    include = include_requests(farm)
    named = order.runtime is not None and context.naming_agrees
    more = [*include, *scripts_on_base(farm, start.tip)]
    agree_to_start(farm, chosen, named=named, more=more, yes=order.yes, ask=context.ask)
    preparation = preparation_of(farm, include)
    carry = _carries(farm, start)
    subdirectory = _subdirectory(farm, work, start.tip)
    return Plan(
        order,
        context.directory or farm.root,
        work,
        start,
        chosen,
        role,
        role_text,
        subdirectory,
        preparation,
        carry,
        _sparse(farm, order, work, start.tip, subdirectory),
        (
            *chosen.notes,
            *_notes(order, start),
            *preparation.notes,
            *ground.notes,
            *_tool_notes(farm, role, role_text, work),
            *(() if carry else _uncommitted_notes(farm, work)),
        ),
        ground.after,
        ground.stack,
    )


class _Ground(Struct, frozen=True):
    """Where it starts: the work of `after` has to land on `base` first, or on the work of `stack`."""

    base: str | None
    after: str | None = None
    stack: str | None = None
    notes: tuple[str, ...] = ()


def _ground(context: Context, order: Spawn) -> _Ground:
    given = {"--after": order.after, "--stack": order.stack, "--branch": order.branch}
    named = [flag for flag, value in given.items() if value is not None]
    if order.stack is not None and order.base is not None:
        named.append("--base")
    if len(named) > 1:
        raise UsageError(f"Flags are mutually exclusive: {', '.join(named)}", hint="af spawn --help")
    if order.after is None and order.stack is None:
        return _Ground(order.base)
    from agent_farm.landing.arrival import arrived_base  # takes 20 ms, which no other spawn pays

    words = order.after.split(",") if order.after is not None else [str(order.stack)]
    before = [choose(context, word.strip()) for word in words]
    base = order.base or before[0].base
    landed = {first.id: arrived_base(context.farm, first.id, base) for first in before}
    left = [id for id, where in landed.items() if where is None]
    if not left:
        return _Ground(landed[before[-1].id])
    return (
        _Ground(base, after=",".join(left))
        if order.after is not None
        else _on_top_of(context.farm, before[0])
    )


def _on_top_of(farm: Farm, first: BuilderRecord) -> _Ground:
    """Starts from its current commit, on whatever branch, without uncommitted files."""
    from agent_farm.git.changes import tree_state

    tree = farm.tree_if_there(first)
    state = tree_state(tree) if tree else None
    if state is None or state.head is None:
        raise UsageError(
            f"{first.id} has no commit to build on yet", hint=as_command("af", "status", first.id)
        )
    changed = len({*state.dirty, *state.untracked})
    note = f"{first.id} has {changed} uncommitted file{'s' * (changed != 1)}; they are not in its commits"
    return _Ground(state.branch or state.head, stack=first.id, notes=(note,) if changed else ())


def _notes(order: Spawn, start: Start) -> tuple[str, ...]:
    if start.existing_branch and not order.branch and not start.upstream:
        return (f"{start.existing_branch} already exists; the builder continues it",)
    return start.notes


def _tool_notes(farm: Farm, role: Path | None, role_text: str | None, work: Work) -> list[str]:
    """Warns about missing programs, since a builder that is told to run one fails at its first step."""
    notes = []
    if role and (names := absent_tools(role_text)):
        path = role.relative_to(farm.root) if role.is_relative_to(farm.root) else role
        notes.append(f"{path} needs {', '.join(names)}, not installed here; --role FILE gives another role")
    if work.protocol_name and (names := absent_tools(work.prompt)):
        notes.append(f"the protocol {work.protocol_name} needs {', '.join(names)}, not installed here")
    return notes


def _uncommitted_notes(farm: Farm, work: Work) -> tuple[str, ...]:
    """Warns about uncommitted edits to files that the prompt points to: the builder gets committed text."""
    if not work.reads:
        return ()
    from agent_farm.git.changes import changed_below  # like `tree_state` below: few spawns ask for changes

    state = changed_below(farm.repository.persons_checkout(), work.reads)
    paths = (*state.dirty, *state.untracked)
    if not paths:
        return ()
    notes = [f"{path} has uncommitted changes; the builder gets the committed text" for path in state.dirty]
    notes += [f"{path} is not committed; the builder does not get it" for path in state.untracked]
    return (*notes, f"to include them: {as_command('git', 'add', '--', *paths)} && git commit")


def _subdirectory(farm: Farm, work: Work, commit: str) -> str:
    """The user's directory below the top, if the builder's tree has it.

    What the prompt of a spec or protocol points to is found from the top.
    """
    prefix = farm.repository.prefix if work.type in ("task", "shell") else ""
    return prefix if prefix and farm.repository.entry_kind(commit, prefix) == "tree" else ""


def _sparse(farm: Farm, order: Spawn, work: Work, commit: str, subdirectory: str) -> tuple[str, ...]:
    """The directories of a sparse checkout, with those that the prompt and the runtime need."""
    asked = [inside_checkout(farm, name, "--sparse") for name in order.sparse]
    names = asked or farm.settings.items("spawn.sparse")
    if not names or "." in asked:
        return ()
    from agent_farm.farm.sparse_directories import directories_of, outermost, require_directories

    chosen = require_directories(farm, commit, names, "--sparse" if asked else "spawn.sparse")
    return outermost([*chosen, *directories_of(farm, commit, work.reads), subdirectory])


def _carries(farm: Farm, start: Start) -> bool:
    """Whether the builder gets this checkout's uncommitted changes, which only fit the commit they are on."""
    if not farm.settings.flag("worktree.uncommitted"):
        return False
    from agent_farm.git.changes import tree_state

    if tree_state(farm.repository.persons_checkout()).clean:
        return False
    if start.tip != farm.repository.head().commit:
        raise UsageError(
            "Uncommitted changes can be carried only to a builder that starts from HEAD",
            why="worktree.uncommitted is set, and this checkout has uncommitted changes.",
            hint="git stash, or leave --base and --branch out",
        )
    return True
