"""Types that msgspec reads by, each made known to it by one thread alone.

At its first use of a type msgspec finds out what is in it, and crashes the process where another thread uses
the same type, or one that holds it, meanwhile (0.22.0; `tests/foundation/test_typed.py` shows it).
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from msgspec.json import Decoder

_ONE_AT_A_TIME = Lock()


def make_known(kind: Any) -> None:
    """Before a thread reads by it."""
    with _ONE_AT_A_TIME:
        _known(kind)


@cache
def _known(kind: Any) -> Decoder[Any]:
    return Decoder(kind)
