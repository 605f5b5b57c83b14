"""Finds settings of the user and the project that a CLI always reads, so that they can be switched off."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.inside import NotReadable, read_plain

# What is not closed goes on to the end, so that it is gone through once: a clone may have written it.
_STRING = r'"(?:\\.|[^"\\])*+(?:"|\\?\Z)'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?(?:\*/|\Z)", re.DOTALL)
_TRAILING = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def directories_between(top: Path, bottom: Path) -> Iterator[Path]:
    """`bottom` and its parents up to `top`, as CLIs look for project settings."""
    here = bottom
    while True:
        yield here
        if here == top or here == here.parent or not here.is_relative_to(top):
            return
        here = here.parent


def settings_between(top: Path, bottom: Path, *names: str) -> Iterator[Path]:
    return (directory / name for directory in directories_between(top, bottom) for name in names)


def table(document: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    found = document.get(name)
    return found if isinstance(found, Mapping) else {}


def load_json(path: Path) -> Mapping[str, Any]:
    """Empty if there is no file; a file that we cannot read, the CLI cannot read either."""
    with suppress(OSError, NotReadable, ValueError, RecursionError):
        loaded = parse_jsonc(read_plain(path).decode())
        return loaded if isinstance(loaded, Mapping) else {}
    return {}


def load_toml(path: Path) -> Mapping[str, Any]:
    """Like `load_json`."""
    import tomllib

    with suppress(OSError, NotReadable, ValueError, RecursionError):
        return tomllib.loads(read_plain(path).decode())
    return {}


def parse_jsonc(text: str) -> object:
    """JSON with comments and trailing commas, as people write it; ValueError if it is not even that.

    Empty text is an empty object.
    """
    bare = _TRAILING.sub(_keep_string, _COMMENT.sub(_keep_string, text.removeprefix("\ufeff")))
    return json.loads(bare) if bare.strip() else {}


def _keep_string(match: re.Match[str]) -> str:
    return match.group(1) or ""
