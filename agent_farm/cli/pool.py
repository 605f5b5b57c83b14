"""`af pool`."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_farm
from agent_farm.cli.output import answer
from agent_farm.errors import UsageError


@click.group()
def pool() -> None:
    """Keep worktrees ready for the next spawns: [pool] size in agent-farm.toml.

    A spawn takes a ready worktree instead of checking out all files, and has the pool refilled in the
    background. Each ready worktree takes the disk space of one checkout.
    """


@pool.command()
def fill() -> None:
    """Make as many worktrees ready as [pool] size says, at the commit of the main checkout."""
    from agent_farm.farm.pool import fill as make_ready

    farm = current_farm()
    if not farm.settings.number("pool.size"):
        raise UsageError("The pool is off", hint="af config set pool.size 2")
    answer(f"{make_ready(farm)} ready")


@pool.command()
def drain() -> None:
    """Remove all ready worktrees."""
    from agent_farm.farm.pool import drain as remove

    answer(f"{remove(current_farm())} removed")
