"""Preparing types for msgspec, one thread at a time.

The first time msgspec meets a type it inspects it, and it crashes the process if another thread uses the same
type, or one that contains it, meanwhile (0.22.0; `tests/foundation/test_typed.py` shows it).
"""

from __future__ import annotations

from functools import cache
from threading import Lock
from typing import Any

from msgspec.json import Decoder

_ONE_AT_A_TIME = Lock()


def make_known(kind: Any) -> None:
    """Call this before a thread decodes `kind`."""
    with _ONE_AT_A_TIME:
        _known(kind)


@cache
def _known(kind: Any) -> Decoder[Any]:
    return Decoder(kind)
