"""Which runtime a builder gets, and how it is allowed to behave."""

from __future__ import annotations

import os
import shlex
from dataclasses import dataclass
from typing import cast

from agent_farm.consent import Request
from agent_farm.errors import ToolMissing, UsageError, nearest
from agent_farm.farm.farm import Farm
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.base import Permissions, RuntimeAdapter
from agent_farm.runtimes.origin import runtime_requests


@dataclass(frozen=True, slots=True)
class Chosen:
    """An adapter with the settings that hold for it in this farm, and the consent they need."""

    adapter: RuntimeAdapter
    model: str | None
    permissions: Permissions
    command: tuple[str, ...] | None
    extra_args: tuple[str, ...]
    requests: tuple[Request, ...]

    @property
    def name(self) -> str:
        return self.adapter.name

    def require_usable(self) -> None:
        problem = self.adapter.problem(os.environ, command=self.command, model=self.model)
        if problem:
            raise ToolMissing(
                f"The runtime {self.name} cannot be used", why=problem, hint="af spawn --runtime demo …"
            )


def choose_runtime(
    farm: Farm, name: str | None, *, model: str | None = None, permissions: str | None = None
) -> Chosen:
    """The runtime asked for, usable or not, else the configured one, else the first that is usable."""
    default = farm.settings.text("spawn.runtime")
    given = name or default
    if given is None:
        return _first_usable(farm, model, permissions)
    model = model or _own_model(farm, given, is_default=given == default)
    return _configured(farm, given, model, permissions)


def _first_usable(farm: Farm, model: str | None, permissions: str | None) -> Chosen:
    problems = []
    for name in adapter_names():
        if name == "demo":  # it does no real work: only when asked for
            continue
        chosen = _configured(farm, name, model or _own_model(farm, name, is_default=True), permissions)
        problem = chosen.adapter.problem(os.environ, command=chosen.command, model=chosen.model)
        if problem is None:
            return chosen
        problems.append(f"{name}: {problem}")
    raise ToolMissing(
        "No runtime is usable",
        why="Install one and log in, or try the demo runtime, which needs no account.",
        evidence=problems,
        hint="af spawn --runtime demo …",
    )


def _own_model(farm: Farm, name: str, *, is_default: bool) -> str | None:
    """`spawn.model` is for the default runtime: no other knows a model of that name."""
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
    own = farm.settings.runtime(name)
    return Chosen(
        adapter,
        model,
        cast(Permissions, permissions or own.permissions or farm.settings.values["spawn.permissions"]),
        tuple(shlex.split(own.command)) if own.command else None,
        own.args,
        tuple(runtime_requests(farm.root, farm.settings, name, permissions=permissions)),
    )
