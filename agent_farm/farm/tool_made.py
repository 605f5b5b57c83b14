"""Recognises ignored directories that a tool made and can make again, so that nobody's work is in them.

A name alone is no proof: `build/`, `target/` or a `node_modules/` made by hand may contain what exists
nowhere else. Only the marker that the tool itself leaves in the directory counts.
"""

from __future__ import annotations

import os
from pathlib import Path

_CACHE = ("CACHEDIR.TAG",)
_ENVIRONMENT = ("pyvenv.cfg",)
_MARKS = {
    "node_modules": (".package-lock.json", ".yarn-integrity", ".yarn-state.yml", ".modules.yaml"),
    ".venv": _ENVIRONMENT,
    "venv": _ENVIRONMENT,
    ".mypy_cache": _CACHE,
    ".pytest_cache": _CACHE,
    ".ruff_cache": _CACHE,
    ".tox": _CACHE,
    "target": _CACHE,
}


def is_tool_made(root: Path, path: str) -> bool:
    """Recognised by its name and a marker in it; not through a link, nor if it cannot be read."""
    directory = root / path
    if os.path.realpath(directory) != os.path.join(os.path.realpath(root), os.path.normpath(path)):
        return False
    try:
        if directory.is_symlink() or not directory.is_dir():
            return False
        if directory.name == "__pycache__":
            return _holds_bytecode_alone(directory)
    except OSError:
        return False
    return any((directory / mark).is_file() for mark in _MARKS.get(directory.name, ()))


def _holds_bytecode_alone(directory: Path) -> bool:
    with os.scandir(directory) as entries:
        return all(entry.name.endswith((".pyc", ".nbi", ".nbc")) for entry in entries)
