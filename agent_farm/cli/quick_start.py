"""What every command loads, without what that loads in turn and no command uses."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


def start_fast() -> None:
    """Before click is loaded: imports create many objects and no garbage, so collecting it begins later."""
    gc.set_threshold(50_000)


def load_libraries() -> None:
    """Every command needs them, but neither the list of commands nor its completion does.

    `Path.as_uri` needs `quote_from_bytes`, and JSON schemas need `dedent`. What msgspec takes from
    typing_extensions is also in typing since Python 3.11.
    """
    with _later("urllib.parse", "quote_from_bytes"):
        import_module("pathlib")
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # an ImportError
        with _later("textwrap", "dedent"):
            import_module("msgspec")
        del sys.modules["typing_extensions"]


@contextmanager
def _later(name: str, function: str) -> Iterator[None]:
    """What is loaded here gets a stand-in for a module of which it wants one function, and seldom: the module
    takes a millisecond to load, and is loaded when the function is called."""
    if name in sys.modules:
        yield
        return

    def call(*args: Any) -> Any:
        return getattr(import_module(name), function)(*args)

    sys.modules[name] = stand_in = ModuleType(name)
    setattr(stand_in, function, call)
    yield
    del sys.modules[name]
