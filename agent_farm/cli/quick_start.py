"""Loads what every command needs, without the modules that those libraries want for a single function."""

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
    """click wants inspect (3 ms) to clean the help of its options.

    Imports make many objects but no garbage, so the collector starts later.
    """
    gc.set_threshold(50_000)
    with _stand_in("inspect", cleandoc=_cleandoc), _stand_in("platform", system=_system):
        import_module("click")


def load_libraries() -> None:
    """Every command needs these, but neither the list of commands nor its completion does.

    pathlib wants urllib.parse (1 ms) for `Path.as_uri`; msgspec wants textwrap (1 ms) for JSON schemas, and
    of typing_extensions what is also in typing since Python 3.11; uuid, which click or msgspec loads, wants
    platform (1 ms) to ask for the system.
    """
    with _stand_in("urllib.parse", quote_from_bytes=_later("urllib.parse", "quote_from_bytes")):
        import_module("pathlib")
    if "typing_extensions" not in sys.modules:
        sys.modules["typing_extensions"] = None  # type: ignore[assignment]  # an ImportError
        with _stand_in("textwrap"), _stand_in("platform", system=_system):
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
    """What is imported inside keeps it; whoever imports the module later gets the real one."""
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


def _system() -> str:
    return os.uname().sysname


def _cleandoc(text: str) -> str:
    """`inspect.cleandoc`; only text of several lines needs the real one."""
    return _later("inspect", "cleandoc")(text) if "\n" in text else text.expandtabs().lstrip()
