"""Chooses a builder's runtime and how it may behave, and asks for consent before it starts."""

from __future__ import annotations

import os
import shlex
from collections.abc import Sequence
from typing import cast

from msgspec import Struct

from agent_farm.consent import Ask, Consent, ConsentRequest, named_paths, require_consent
from agent_farm.errors import ToolMissing, UsageError, nearest
from agent_farm.farm.farm import Farm
from agent_farm.inside import read_plain
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.base import Permissions, RuntimeAdapter, no_runtime, require_model
from agent_farm.runtimes.origin import agree_by_name, runtime_requests

INCLUDE_FILE = ".worktreeinclude"
# Settings that take effect when a builder starts, whatever its runtime.
AT_A_START = (
    "worktree.setup",
    "worktree.copy",
    "worktree.link",
    "worktree.carry",
    "worktree.submodules",
    "notify.command",
    "notify.to",
    "env.pass",
    "tmux.socket",
)


class Chosen(Struct, frozen=True):
    """An adapter with the settings that apply to it in this farm, and the consent they need."""

    adapter: RuntimeAdapter
    model: str | None
    permissions: Permissions
    command: tuple[str, ...] | None
    extra_args: tuple[str, ...]
    unlock: tuple[str, ...]
    requests: tuple[ConsentRequest, ...]

    @property
    def name(self) -> str:
        return self.adapter.name

    @property
    def notes(self) -> tuple[str, ...]:
        version = self.adapter.version_note(os.environ, self.command)
        unlocked = f"{self.name} is unlocked: {', '.join(self.unlock)}" if self.unlock else None
        return tuple(note for note in (version, unlocked) if note)

    def require_usable(self) -> None:
        problem = self.adapter.problem(os.environ, command=self.command, model=self.model)
        if problem:
            raise ToolMissing(
                f"The runtime {self.name} cannot be used", why=problem, hint="af spawn --runtime demo …"
            )


def choose_runtime(
    farm: Farm, name: str | None, *, model: str | None = None, permissions: str | None = None
) -> Chosen:
    """The requested runtime, usable or not; else the configured one; else the first that is usable."""
    default = farm.settings.text("spawn.runtime")
    given = name or default
    if given is None:
        return _first_usable(farm, model, permissions)
    model = model or _own_model(farm, given, is_default=given == default)
    return _configured(farm, given, model, permissions)


def _first_usable(farm: Farm, model: str | None, permissions: str | None) -> Chosen:
    problems = []
    for name in adapter_names():
        if name == "demo":  # does no real work, so it must be asked for
            continue
        chosen = _configured(farm, name, model or _own_model(farm, name, is_default=True), permissions)
        problem = chosen.adapter.problem(os.environ, command=chosen.command, model=chosen.model)
        if problem is None:
            return chosen
        problems.append(f"{name}: {problem}")
    raise no_runtime(problems, hint="af spawn --runtime demo …")


def _own_model(farm: Farm, name: str, *, is_default: bool) -> str | None:
    """`spawn.model` belongs to the default runtime; no other runtime knows that model."""
    return farm.settings.runtime(name).model or (farm.settings.text("spawn.model") if is_default else None)


def _configured(farm: Farm, name: str, model: str | None, permissions: str | None) -> Chosen:
    try:
        adapter = get_adapter(name, farm.root)
    except ValueError as error:
        told = f"There are: {', '.join(adapter_names(farm.root))}"
        if name == farm.settings.text("spawn.runtime"):
            told = f"spawn.runtime in {farm.settings.source('spawn.runtime')} names it. {told}"
        close = nearest(name, adapter_names(farm.root))
        raise UsageError(
            f"No runtime {name}",
            why=told,
            hint=f"af spawn --runtime {close} …" if close else "af runtimes",
        ) from error
    if not adapter.cli.pane:
        raise UsageError(
            f"{name} cannot work in a pane",
            why="It is an ACP agent, which af starts headless: af run, af trigger, schedules.",
            hint=f'af run --runtime {name} "…"',
        )
    own = farm.settings.runtime(name)
    return Chosen(
        adapter,
        require_model(model),
        cast(Permissions, permissions or own.permissions or farm.settings.values["spawn.permissions"]),
        tuple(shlex.split(own.command)) if own.command else None,
        own.args,
        _known_unlock(adapter, own.unlock),
        tuple(runtime_requests(farm.root, farm.settings, name, permissions=permissions)),
    )


def _known_unlock(adapter: RuntimeAdapter, unlock: tuple[str, ...]) -> tuple[str, ...]:
    """In the order of the adapter's description, so that the same words give the same record."""
    known = adapter.cli.unlocks
    for word in unlock:
        if word not in known:
            raise UsageError(
                f"runtimes.{adapter.name}.unlock cannot be {word!r}",
                why=f"It can be: {', '.join(known)}" if known else f"{adapter.name} has nothing to unlock.",
                hint=f"af config unset runtimes.{adapter.name}.unlock",
            )
    return tuple(word for word in known if word in unlock)


def agree_to_start(
    farm: Farm,
    chosen: Chosen,
    *,
    named: bool = False,
    more: Sequence[ConsentRequest] = (),
    yes: Consent = False,
    ask: Ask | None = None,
) -> None:
    """ConsentNeeded unless everything the repository wants, `more` included, was approved in its present
    form; ToolMissing if the runtime cannot be used anyway.

    Naming a repository's own runtime (`named`) approves it, then and later.
    """
    farm.settings.require_good()
    if named:
        agree_by_name(farm.root, chosen.name)
    requests = [*chosen.requests, *farm.settings.requests(_at_a_start(farm)), *more]
    require_consent(farm.root, requests, yes=yes, ask=ask)
    chosen.require_usable()


def _at_a_start(farm: Farm) -> tuple[str, ...]:
    """If checks run automatically, their commands, too: nobody can be asked when a turn ends."""
    values = farm.settings.values
    checks = (name for name in values if name.startswith("check.") or name == "merge.check")
    return (*AT_A_START, *(checks if values["check.auto"] == "idle" else ()))


def include_requests(farm: Farm) -> list[ConsentRequest]:
    """The patterns in .worktreeinclude; those in the settings are asked about with the settings."""
    try:
        data = read_plain(farm.repository.checkout / INCLUDE_FILE)
    except FileNotFoundError:
        return []
    return [ConsentRequest(INCLUDE_FILE, data.decode(errors="surrogateescape").strip())]


def scripts_on_base(farm: Farm, commit: str) -> list[ConsentRequest]:
    """Scripts that worktree.setup names and that differ on the base, whose version a builder has."""
    requests = []
    for setup in farm.settings.requests(["worktree.setup"]):
        found = farm.repository.read_followed(commit, _below(named_paths(setup.content)))
        if places := [name for name, (kind, _) in found.items() if kind == "tree"]:
            found = farm.repository.read_followed(commit, _below(named_paths(setup.content, places)))
        for name, (kind, content) in found.items():
            here = farm.root / name
            if kind == "blob" and not (here.is_file() and here.read_bytes() == content):
                text = content.decode(errors="surrogateescape")
                requests.append(ConsentRequest(f"{setup.origin}, {name} on the base", text))
    return requests


def _below(names: Sequence[str]) -> list[str]:
    return [name for name in names if not os.path.isabs(name)]
