"""`af board`, and `af` alone in a terminal; `af tmux`, which has tmux open it."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_farm
from agent_farm.cli.output import answer, require_terminal


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


# `q:` quotes the path for the shell that tmux runs, all but a line break, which `s` replaces: whoever named a
# directory does not choose a command.
LINES = """\
# af: prefix A opens the board over the pane; the status line says how many builders need you
bind-key A display-popup -E -w 95% -h 95% -d "#{pane_current_path}" "af board"
set-option -ag status-right " #(cd -- #{s/\\n/_/;q:pane_current_path} && af status --short 2>/dev/null)"
"""


@click.command("tmux")
def tmux_lines() -> None:
    """Print lines for tmux.conf: a key for the board and a segment for the status line.

    \b
      af tmux >> ~/.tmux.conf && tmux source-file ~/.tmux.conf
    """
    answer(LINES, end="")
