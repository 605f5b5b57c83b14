"""`af tmux`."""

from __future__ import annotations

import click

from agent_farm.cli.output import answer

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
