"""What each mode of a spawn amounts to: the prompt, and possible names for the builder."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.builders import ids, prompts
from agent_farm.builders.config import BuilderType
from agent_farm.builders.ids import Name
from agent_farm.errors import NotFound, UsageError
from agent_farm.farm.base_commit import Start, go_on_with
from agent_farm.farm.farm import Farm
from agent_farm.git.remotes import forge_url
from agent_farm.inside import NotReadable, require_inside
from agent_farm.launch import as_command
from agent_farm.operations.spawn_request import (
    IssueMode,
    ItemMode,
    Mode,
    ProtocolMode,
    ShellMode,
    SpecMode,
    TaskMode,
)

if TYPE_CHECKING:
    from agent_farm.forge.issues import Issue


class Work(Struct, frozen=True):
    """`reads` are paths in the checkout that the prompt points to; `is_named`: the user chose the id."""

    type: BuilderType
    names: Callable[[], Iterator[Name]]
    prompt: str | None = None
    task_text: str | None = None
    protocol_name: str | None = None
    protocol_args: Mapping[str, Any] | None = None
    phases: tuple[str, ...] = ()
    spec: str | None = None
    issue: str | None = None
    source: str | None = None
    issue_read: Issue | None = None
    files: tuple[str, ...] = ()
    reads: tuple[str, ...] = ()
    is_named: bool = False


def find_work(
    farm: Farm, mode: Mode, start: Start, *, name: str | None = None, issue: Issue | None = None
) -> tuple[Work, Start]:
    """The work, and where it starts: a spec continues its existing branch."""
    given = ids.given_name(name) if name is not None else None
    work, start = _work(farm, mode, start, issue)
    return (replace(work, names=lambda: iter([given]), is_named=True) if given else work), start


def _work(farm: Farm, mode: Mode, start: Start, issue: Issue | None) -> tuple[Work, Start]:
    match mode:
        case SpecMode(project, protocol):
            return _spec_work(farm, project, protocol, start)
        case IssueMode(reference, protocol):
            return _issue_work(farm, reference, protocol, start, issue), start
        case TaskMode(text, files):
            return _task_work(farm, text, files, start), start
        case ItemMode():
            from agent_farm.operations.spawn_items import item_work

            return item_work(farm, mode, start.tip), start
        case ProtocolMode():
            from agent_farm.operations.spawn_protocol import find_protocol

            alone = find_protocol(farm, mode, start.tip)
            epoch = int(time.time())
            names = lambda: ids.protocol_names(alone.name, epoch)  # noqa: E731
            return alone.work("protocol", names, alone.prompt()), start
        case ShellMode():
            epoch = int(time.time())
            return Work("shell", lambda: ids.shell_names(epoch)), start


def _task_work(farm: Farm, text: str, files: tuple[str, ...], start: Start) -> Work:
    _require_no_project(farm, text, start.tip)
    reads = _files(farm, files, start.tip)
    by_words = farm.settings.text("spawn.names") == "words"
    names = ids.word_names if by_words else ids.task_names
    return Work("task", lambda: names(text), prompts.task_prompt(text, files), text, files=files, reads=reads)


def _require_no_project(farm: Farm, text: str, commit: str) -> None:
    """`af spawn 0009-login` means the spec of that name."""
    word = text.strip().removeprefix("codev/specs/").removesuffix(".md")
    if "-" not in word or not word[0].isalnum() or any(char.isspace() or char == "/" for char in word):
        return
    specs = ids.list_specs(farm.repository.list_directory(commit, "codev/specs"))
    if any(word == f"{spec.id}-{spec.name}" for spec in specs):
        raise UsageError(
            f"{word} alone is not a task",
            why="It is the name of a spec.",
            hint=as_command("af", "spawn", "--project", word),
        )


def _spec_work(farm: Farm, project: str, asked: ProtocolMode | None, start: Start) -> tuple[Work, Start]:
    spec = _find_spec(farm, project, start.tip)
    name = ids.spec_name(spec)
    if not farm.repository.is_valid_branch(name.branch):
        raise UsageError(
            f"{spec.spec_path} does not give a valid branch name", why=f"git refuses {name.branch}."
        )
    if start.existing_branch is None and farm.repository.branch_commit(name.branch):
        record = farm.registry.read().get(name.id)
        is_taken = record is not None and record.state != "queued"
        start = start if is_taken else go_on_with(farm, start, name.branch)
    kinds = farm.repository.entry_kinds(start.tip, [spec.plan_path])
    has_plan = kinds[spec.plan_path] == "blob"
    require_own(farm, start.tip, [spec.spec_path, *([spec.plan_path] if has_plan else [])])
    work = Work(
        "spec",
        lambda: iter([name]),
        prompts.spec_prompt(spec, has_plan=has_plan),
        spec=spec.spec_path,
        reads=(spec.spec_path, spec.plan_path),
    )
    if asked is None:
        return work, start
    from agent_farm.operations.spawn_protocol import find_protocol

    protocol = find_protocol(farm, asked, start.tip, has="spec")
    return protocol.with_spec(work, spec, has_plan=has_plan), start


def _issue_work(
    farm: Farm, reference: str, asked: ProtocolMode | None, start: Start, known: Issue | None
) -> Work:
    from agent_farm.forge.forge_cli import choose_forge
    from agent_farm.forge.issues import fetch_issue, issue_number
    from agent_farm.operations.spawn_protocol import find_protocol

    issue_number(reference)  # checked before the forge is asked
    protocol = find_protocol(farm, asked, start.tip, has="issue") if asked else None
    if known is None:
        url = forge_url(farm.repository, farm.repository.persons_checkout().checked_out().branch)
        cli = choose_forge(farm.root, url, setting=farm.settings.text("forge.command"))
        known = fetch_issue(cli, reference)
    issue = known
    kind = protocol.name if protocol else "issue"
    names = lambda: ids.issue_names(kind, issue.number)  # noqa: E731
    if protocol:
        work = protocol.work("protocol", names, protocol.issue_prompt(issue))
    else:
        work = Work("task", names, prompts.issue_prompt(issue.name, issue.url, issue.quoted))
    return replace(work, task_text=issue.name, issue=issue.url or None, issue_read=issue)


def _find_spec(farm: Farm, project: str, commit: str) -> ids.Spec:
    committed = farm.repository.list_directory(commit, "codev/specs")
    try:
        return ids.find_spec(project, committed)
    except NotFound:
        folder = farm.repository.checkout / "codev/specs"
        require_inside(farm.repository.checkout, folder)
        present = sorted(path.name for path in folder.glob("*.md")) if folder.is_dir() else []
        spec = ids.find_spec(project, sorted({*present, *committed}))
        raise uncommitted(spec.spec_path) from None


def require_own(farm: Farm, commit: str, paths: Sequence[str]) -> None:
    """A builder reads these as its task: they must not be links to files outside the repository."""
    if found := farm.repository.link_out(commit, paths):
        path, target = found
        raise NotReadable(
            f"{path} is a symbolic link that leads out of the repository, to {target}",
            why="A builder is only given files of the repository.",
            hint=as_command("git", "log", "--stat", "--", path),
        )


def _files(farm: Farm, files: tuple[str, ...], commit: str) -> tuple[str, ...]:
    """Their paths in the checkout, after checking that each is in the tree that the builder will see."""
    paths = {name: inside_checkout(farm, name, "--files") for name in files}
    kinds = farm.repository.entry_kinds(commit, list(paths.values())) if paths else {}
    for name, path in paths.items():
        if kinds[path] is None:
            if (farm.repository.checkout / path).exists():
                raise uncommitted(path)
            raise NotFound(f"--files: {name} is not in the repository", hint="git ls-files")
    return tuple(paths.values())


def inside_checkout(farm: Farm, name: str, flag: str) -> str:
    """The path in the checkout, given a name relative to the caller's directory."""
    checkout = farm.repository.checkout
    full = os.path.normpath(checkout / farm.repository.prefix / name)
    relative = os.path.relpath(full, checkout)
    if relative == ".." or relative.startswith("../") or "\n" in name:
        raise UsageError(f"{flag}: {name} is outside the repository")
    return relative


def uncommitted(path: str) -> NotFound:
    commit = as_command("git", "add", "--", path)
    return NotFound(
        f"{path} is not committed",
        why="A builder sees what is committed on its base.",
        hint=f'{commit} && git commit -m "Add {Path(path).name}"',
    )
