"""Loads what every command needs, but not what that wants for one function, if at all."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from importlib import import_module
from types import ModuleType
from typing import Any


def load_click() -> None:
    """click wants inspect (3 ms) to clean options' help, and uuid platform (1 ms) to ask for the system.

    Imports create many objects and no garbage, so collecting it begins later.
    """
    gc.set_threshold(50_000)
    with _stand_in("inspect", cleandoc=_cleandoc), _stand_in("platform", system=lambda: os.uname().sysname):
        import_module("click")


def load_libraries() -> None:
    """Every command needs these, but neither the list of commands nor its completion does.

    pathlib wants urllib.parse (1 ms) for `Path.as_uri`, msgspec textwrap (1 ms) for JSON schemas; and of
    typing_extensions what is also in typing since Python 3.11.
    """
    with _stand_in("urllib.parse", quote_from_bytes=_later("urllib.parse", "quote_from_bytes")):
        import_module("pathlib")
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # an ImportError
        with _stand_in("textwrap"):
            import_module("msgspec")
        del sys.modules["typing_extensions"]


class _StandIn(ModuleType):
    """Has a few functions of a module, and loads it for anything else."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if sys.modules.get(self.__name__) is self:
            del sys.modules[self.__name__]
        return getattr(import_module(self.__name__), name)


@contextmanager
def _stand_in(name: str, **functions: Callable[..., Any]) -> Iterator[None]:
    """For what is loaded inside; others get the real module."""
    if name in sys.modules:
        yield
        return
    sys.modules[name] = module = _StandIn(name)
    vars(module).update(functions)
    try:
        yield
    finally:
        if sys.modules.get(name) is module:
            del sys.modules[name]


def _later(module: str, function: str) -> Callable[..., Any]:
    return lambda *args: getattr(import_module(module), function)(*args)


def _cleandoc(text: str) -> str:
    """`inspect.cleandoc`, which also takes their indentation from further lines."""
    return _later("inspect", "cleandoc")(text) if "\n" in text else text.expandtabs().lstrip()
