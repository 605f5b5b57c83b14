"""Durations and ages as they are typed: 90, 60s, 30m, 12h, 7d."""

from __future__ import annotations

import math
from typing import Any

import click

from agent_farm.errors import UsageError

_UNITS = {"s": 1, "m": 60, "h": 3600, "d": 86400}
_MOST = 1e12


def _seconds(text: str, *, bare: int | None) -> float | None:
    """`bare` is the unit of a number without one. None if `text` is not a duration."""
    try:
        unit = _UNITS.get(text[-1:])
        seconds = float(text[:-1]) * unit if unit else float(text) * (bare or 0)
    except ValueError:
        return None
    if not (unit or bare or text == "0"):
        return None
    return seconds if 0 <= seconds < math.inf else None


class Age(click.ParamType[float]):
    """An age such as 30m, 12h or 7d, in seconds."""

    name = "age"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = _seconds(str(value), bare=None)
        if seconds is None or seconds >= _MOST:
            option = param.opts[0] if param else "age"
            raise UsageError(f"{option}: {value!r} is not an age", why="Write 30m, 12h or 7d.")
        return seconds


class Timeout(click.ParamType[float]):
    """A number of seconds, or a duration with a unit."""

    name = "timeout"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        seconds = _seconds(str(value), bare=1)
        if seconds is None:
            option = param.opts[0] if param else "timeout"
            raise UsageError(f"{option}: {value!r} is not a length of time", why="Write 90, 60s, 5m or 1h.")
        return seconds


def age_option(word: str, help: str, default: str | None = None) -> click.Option:
    return click.Option(
        [word], type=Age(), metavar="AGE", help=help, default=default, show_default=default is not None
    )
