"""What a spawn needs to know before anything exists: every mistake of the user is found here."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.builders import ids, prompts
from agent_farm.builders.config import BuilderType
from agent_farm.builders.ids import Name
from agent_farm.builders.roles import choose_role, load_role
from agent_farm.consent import Request
from agent_farm.errors import NotFound, ToolMissing, UsageError
from agent_farm.farm.base_commit import Start, choose_start, go_on_with
from agent_farm.farm.chosen_runtime import (
    Chosen,
    agree_to_start,
    choose_runtime,
    include_requests,
    scripts_on_base,
)
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import changed_below, tree_state
from agent_farm.git.ignoring import ignored_files
from agent_farm.inside import NotReadable, require_inside
from agent_farm.launch import as_command
from agent_farm.operations.operation import Context
from agent_farm.operations.spawn_request import (
    Mode,
    ProtocolMode,
    ShellMode,
    Spawn,
    SpecMode,
    TaskMode,
    choose_mode,
)


@dataclass(frozen=True, slots=True)
class Work:
    """What the mode comes to."""

    type: BuilderType
    names: Callable[[], Iterator[Name]]
    prompt: str | None = None
    task_text: str | None = None
    protocol_name: str | None = None
    protocol_args: Mapping[str, Any] | None = None
    spec: str | None = None
    files: tuple[str, ...] = ()
    # paths below the checkout that the prompt points to
    reads: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Plan:
    work: Work
    start: Start
    chosen: Chosen
    role: Path | None
    role_text: str | None
    subdirectory: str
    ephemeral: bool
    copies: tuple[str, ...]
    copy_from: Path
    setup: str | None
    carry: bool
    notes: tuple[str, ...] = ()


def preflight(context: Context, order: Spawn) -> Plan:
    """Everything the spawn depends on is there and agreed to; nothing is made yet."""
    mode, farm = choose_mode(order), context.farm
    farm.records()  # heals what a killed spawn left, so that its id and branch are free again
    problem = farm.tmux.problem()
    if problem:
        raise ToolMissing("tmux cannot be used", why=problem)
    if order.branch is not None and order.base is not None:
        raise UsageError("Flags are mutually exclusive: --branch, --base", hint="af spawn --help")
    fetch = order.fetch or farm.settings.flag("spawn.fetch")
    start = choose_start(farm, order.base, order.branch, fetch=fetch)
    work, start = _work(farm, mode, start)
    given = (context.directory or farm.root) / order.role if order.role else None
    role = choose_role(farm.root, work.type, protocol=work.protocol_name, given=given, no_role=order.no_role)
    chosen = choose_runtime(farm, order.runtime, model=order.model, permissions=order.permissions)
    include = include_requests(farm)
    named = order.runtime is not None and context.naming_agrees
    more = [*include, *scripts_on_base(farm, start.tip)]
    agree_to_start(farm, chosen, named=named, more=more, yes=order.yes, ask=context.ask)
    copies = _copies(farm, include)
    carry = _carries(farm, start)
    return Plan(
        work,
        start,
        chosen,
        role,
        load_role(role) if role else None,
        _subdirectory(farm, work, start.tip),
        order.ephemeral,
        copies,
        farm.repository.checkout,
        farm.settings.text("worktree.setup"),
        carry,
        (*_notes(order, start), *(() if carry else _uncommitted_notes(farm, work))),
    )


def _notes(order: Spawn, start: Start) -> tuple[str, ...]:
    if start.existing_branch and not order.branch and not start.upstream:
        return (f"{start.existing_branch} exists already; the builder goes on with it",)
    return start.notes


def _uncommitted_notes(farm: Farm, work: Work) -> tuple[str, ...]:
    """What the prompt points to and somebody has just edited: the builder gets the text that is committed."""
    if not work.reads:
        return ()
    state = changed_below(farm.repository.persons_checkout(), work.reads)
    paths = (*state.dirty, *state.untracked)
    if not paths:
        return ()
    notes = [f"{path} has uncommitted changes; the builder gets the committed text" for path in state.dirty]
    notes += [f"{path} is not committed; the builder does not get it" for path in state.untracked]
    return (*notes, f"to include them: {as_command('git', 'add', '--', *paths)} && git commit")


def _work(farm: Farm, mode: Mode, start: Start) -> tuple[Work, Start]:
    match mode:
        case SpecMode(project):
            return _spec_work(farm, project, start)
        case TaskMode(text, files):
            reads = _files(farm, files, start.tip)
            prompt = prompts.task_prompt(text, files)
            names = lambda: ids.task_names(text)  # noqa: E731
            return Work("task", names, prompt, text, files=files, reads=reads), start
        case ProtocolMode(name, args):
            _require_protocol(farm, name, start.tip)
            epoch = int(time.time())
            prompt = prompts.protocol_prompt(name, args)
            names = lambda: ids.protocol_names(name, epoch)  # noqa: E731
            reads = (prompts.protocol_folder(name),)
            return Work("protocol", names, prompt, protocol_name=name, protocol_args=args, reads=reads), start
        case ShellMode():
            epoch = int(time.time())
            return Work("shell", lambda: ids.shell_names(epoch)), start


def _spec_work(farm: Farm, project: str, start: Start) -> tuple[Work, Start]:
    spec = _find_spec(farm, project, start.tip)
    name = ids.spec_name(spec)
    if not farm.repository.is_valid_branch(name.branch):
        raise UsageError(
            f"{spec.spec_path} gives no valid branch name", why=f"{name.branch} is refused by git."
        )
    if start.existing_branch is None and farm.repository.branch_commit(name.branch):
        record = farm.registry.read().get(name.id)
        start = start if record else go_on_with(farm, start, name.branch)
    kinds = farm.repository.entry_kinds(start.tip, [spec.plan_path])
    has_plan = kinds[spec.plan_path] == "blob"
    _require_own(farm, start.tip, [spec.spec_path, *([spec.plan_path] if has_plan else [])])
    prompt = prompts.spec_prompt(spec, has_plan=has_plan)
    reads = (spec.spec_path, spec.plan_path)
    return Work("spec", lambda: iter([name]), prompt, spec=spec.spec_path, reads=reads), start


def _find_spec(farm: Farm, project: str, commit: str) -> ids.Spec:
    committed = farm.repository.list_directory(commit, "codev/specs")
    try:
        return ids.find_spec(project, committed)
    except NotFound:
        folder = farm.repository.checkout / "codev/specs"
        require_inside(farm.repository.checkout, folder)
        present = sorted(path.name for path in folder.glob("*.md")) if folder.is_dir() else []
        spec = ids.find_spec(project, sorted({*present, *committed}))
        raise _uncommitted(spec.spec_path) from None


def _require_protocol(farm: Farm, name: str, commit: str) -> None:
    folder = prompts.PROTOCOLS
    require_inside(farm.repository.checkout, farm.repository.checkout / folder)
    known = [entry for entry in farm.repository.list_directory(commit, folder) if "/" not in entry]
    kinds = farm.repository.entry_kinds(commit, [prompts.protocol_path(entry) for entry in known])
    ready = [entry for entry in known if kinds[prompts.protocol_path(entry)] == "blob"]
    if name not in ready and (farm.repository.checkout / prompts.protocol_path(name)).is_file():
        raise _uncommitted(f"{folder}/{name}")
    ids.require_protocol(name, ready)
    _require_own(farm, commit, [prompts.protocol_path(name)])


def _require_own(farm: Farm, commit: str, paths: Sequence[str]) -> None:
    """A builder reads these as its task: the repository's own, and no link to something of the user's."""
    if found := farm.repository.link_out(commit, paths):
        path, target = found
        raise NotReadable(
            f"{path} is a symbolic link that leads out of the repository, to {target}",
            why="What a builder is given to read lies in the repository.",
            hint=as_command("git", "log", "--stat", "--", path),
        )


def _files(farm: Farm, files: tuple[str, ...], commit: str) -> tuple[str, ...]:
    """Where they are below the checkout, once each is known to be in the tree the builder will see."""
    paths = {name: _inside(farm, name) for name in files}
    kinds = farm.repository.entry_kinds(commit, list(paths.values())) if paths else {}
    for name, path in paths.items():
        if kinds[path] is None:
            if (farm.repository.checkout / path).exists():
                raise _uncommitted(path)
            raise NotFound(f"--files: {name} is not in the repository", hint="git ls-files")
    return tuple(paths.values())


def _inside(farm: Farm, name: str) -> str:
    checkout = farm.repository.checkout
    full = os.path.normpath(checkout / farm.repository.prefix / name)
    relative = os.path.relpath(full, checkout)
    if relative == ".." or relative.startswith("../") or "\n" in name:
        raise UsageError(f"--files: {name} lies outside the repository")
    return relative


def _uncommitted(path: str) -> NotFound:
    commit = as_command("git", "add", "--", path)
    return NotFound(
        f"{path} is not committed",
        why="A builder sees what is committed on its base.",
        hint=f'{commit} && git commit -m "Add {Path(path).name}"',
    )


def _subdirectory(farm: Farm, work: Work, commit: str) -> str:
    """Where the user is, below the top, if the builder's tree has that directory.

    What a spec's or a protocol's prompt points to is found from the top.
    """
    prefix = farm.repository.prefix if work.type in ("task", "shell") else ""
    return prefix if prefix and farm.repository.entry_kind(commit, prefix) == "tree" else ""


def _carries(farm: Farm, start: Start) -> bool:
    """Whether the builder gets this checkout's uncommitted changes; they belong on the commit they are on."""
    if not farm.settings.flag("worktree.carry"):
        return False
    if tree_state(farm.repository.persons_checkout()).clean:
        return False
    if start.tip != farm.repository.head().commit:
        raise UsageError(
            "Uncommitted changes can be carried only to a builder that starts from HEAD",
            why="worktree.carry is set, and this checkout has uncommitted changes.",
            hint="git stash, or leave --base and --branch out",
        )
    return True


def _copies(farm: Farm, include: Sequence[Request]) -> tuple[str, ...]:
    """Ignored files of this checkout that the repository, or its user, wants in every worktree."""
    patterns = [*farm.settings.items("worktree.copy")]
    for request in include:
        patterns += request.content.splitlines()
    return tuple(ignored_files(farm.repository.persons_checkout(), patterns)) if patterns else ()
