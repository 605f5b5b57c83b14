"""Values for `Cli.events`: parsers that are only loaded for a headless run, not for a pane."""

from __future__ import annotations

from collections.abc import Callable
from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from agent_farm.runtimes.cli import Start
    from agent_farm.runtimes.lines import LineParser


def parser_in(module: str, name: str) -> Callable[[Start], LineParser]:
    """The parser with that name in a module beside this one."""

    def parser(start: Start) -> LineParser:
        made: LineParser = getattr(import_module(f"agent_farm.runtimes.{module}"), name)(start)
        return made

    return parser


def no_parser(start: Start) -> LineParser:
    raise NotImplementedError
