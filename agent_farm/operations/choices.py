"""`choices`: what can be chosen for a spawn."""

from __future__ import annotations

import os

from agent_farm.builders.ids import Spec, list_specs
from agent_farm.farm.farm import Farm
from agent_farm.operations.declare import reads
from agent_farm.operations.operation import Answer, Context, Nothing
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.cli import PERMISSIONS
from agent_farm.runtimes.origin import runtime_problem


class RuntimeChoice(Answer):
    """`problem` says why it cannot be used here."""

    name: str
    problem: str | None


class Defaults(Answer):
    runtime: str | None
    model: str | None
    permissions: str
    base: str
    on: str | None


class Offered(Answer):
    """Projects and protocols are those in the commit that a builder would start from. `on` is what a spawn's
    `on` can be: nothing without a fleet."""

    projects: tuple[Spec, ...]
    protocols: tuple[str, ...]
    runtimes: tuple[RuntimeChoice, ...]
    permissions: tuple[str, ...]
    on: tuple[str, ...]
    defaults: Defaults


@reads("List the specs, protocols, runtimes and permissions that a spawn can choose from", tolerant=False)
def choices(context: Context, request: Nothing) -> Offered:
    farm = context.farm
    head = farm.repository.head(farm.root)
    specs = farm.repository.list_directory(head.commit, "codev/specs")
    protocols = farm.repository.list_directory(head.commit, "codev/protocols")
    return Offered(
        projects=tuple(list_specs(specs)),
        protocols=tuple(sorted(name for name in protocols if "." not in name)),
        runtimes=tuple(_runtime(farm, name) for name in adapter_names(farm.root)),
        permissions=PERMISSIONS,
        on=_machines(farm),
        defaults=Defaults(
            runtime=farm.settings.text("spawn.runtime"),
            model=farm.settings.text("spawn.model"),
            permissions=str(farm.settings.agreed("spawn.permissions")),
            base=farm.settings.text("spawn.base") or head.branch or head.commit,
            on=farm.settings.text("spawn.on"),
        ),
    )


def _machines(farm: Farm) -> tuple[str, ...]:
    if not farm.paths.fleet.exists():
        return ()
    from agent_farm.fleet.book import read_book  # most farms have no fleet

    machines = read_book(farm).machines
    return ("local", "fleet", *sorted(host for host, one in machines.items() if not one.draining))


def _runtime(farm: Farm, name: str) -> RuntimeChoice:
    return RuntimeChoice(name, runtime_problem(farm.root, farm.settings, name, os.environ))
