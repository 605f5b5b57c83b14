"""How long and how old, as they are typed."""

from __future__ import annotations

import click
import pytest

from agent_farm.cli.durations import Age, Timeout
from agent_farm.errors import UsageError
from tests.conftest import Af


def read(kind: click.ParamType[float], text: str) -> float:
    return float(kind.convert(text, None, None))


@pytest.mark.parametrize(
    ("text", "seconds"), [("0", 0), ("90", 90), ("1.5", 1.5), ("60s", 60), ("5m", 300), ("2h", 7200)]
)
def test_a_timeout_is_seconds_or_has_a_unit(text: str, seconds: float) -> None:
    assert read(Timeout(), text) == seconds


@pytest.mark.parametrize("text", ["", "-1", "s", "5 minutes", "nan", "inf", "infs", "5w", "1e308d"])
def test_what_is_no_length_of_time(text: str) -> None:
    for kind in (Timeout(), Age()):
        with pytest.raises(UsageError, match=r"not a length|not an age"):
            read(kind, text)


def test_an_age_has_a_unit() -> None:
    assert (read(Age(), "0"), read(Age(), "12h")) == (0, 43_200)
    with pytest.raises(UsageError, match="is not an age"):
        read(Age(), "30")


def test_wait_takes_a_unit(af: Af, farm: object) -> None:
    done = af("wait", "x", "--timeout", "soon")
    assert done.returncode == 2
    assert "--timeout: 'soon' is not a length of time" in done.stderr
    assert "No builder" in af("wait", "x", "--timeout", "60s").stderr
