"""`af pool`."""

from __future__ import annotations

import click

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer

pool = click.Group(
    "pool",
    help="""Keep worktrees ready for the next spawns: [pool] size in agent-farm.toml.

    A spawn takes a ready worktree instead of checking out all files, and has the pool refilled in the
    background. Each ready worktree takes the disk space of one checkout.
    """,
    commands=[
        command_of(Way("pool_fill", lambda found: answer(f"{found.ready} ready")), name="fill"),
        command_of(Way("pool_drain", lambda found: answer(f"{found.removed} removed")), name="drain"),
    ],
)
