"""`af board`, and `af` alone in a terminal."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_farm
from agent_farm.cli.output import require_terminal


@click.command()
def board() -> None:
    """Look at all builders in one screen, and act on them in place.

    `af` alone in a terminal does the same. Every key is on the screen; ? explains them.
    """
    require_terminal(why="The board needs one.", hint="af status")
    farm = current_farm(tolerant=True)
    from agent_farm.board.board_screen import BoardScreen  # Textual takes longer to load than any command
    from agent_farm.board.keyed_app import KeyedApp

    KeyedApp(BoardScreen(farm.root, farm.paths.name)).show()
