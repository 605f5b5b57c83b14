"""Asks tmux whether what is typed into a pane would reach its program."""

from __future__ import annotations

from msgspec import Struct

from agent_farm.tmux.tmux_process import TmuxAnswer

# The last field may contain blanks.
INPUT_FACTS = "#{pane_dead} #{pane_input_off} #{pane_in_mode} #{pane_pid} #{pane_current_command}"


class PaneInput(Struct, frozen=True):
    """`blocked` says why no input gets in for now."""

    command: str
    pid: int
    in_mode: bool
    blocked: str | None


class NotAnswered(Exception):
    """tmux did not answer, which says nothing about the pane."""


class PaneGone(Exception):
    """The message says how it ended."""


def read_input(answer: TmuxAnswer) -> PaneInput:
    """Parse the first line of the answer to INPUT_FACTS."""
    words = answer.out.partition("\n")[0].split(" ", 4)
    if answer.code and not answer.gone:
        raise NotAnswered(f"tmux could not be asked: {answer.err}")
    if answer.code or len(words) < 5 or not words[3]:
        raise PaneGone(f"the pane is gone: {answer.err or 'tmux does not know it'}")
    if words[0] == "1":
        raise PaneGone("the pane's program has ended")
    blocked = "input to the pane is switched off" if words[1] == "1" else None
    return PaneInput(words[4], int(words[3]), words[2] not in ("", "0"), blocked)
