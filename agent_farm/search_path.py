"""Where programs are looked for: never in a place that depends on the working directory.

A clone may have brought along a program called `tmux` or `gh`.
"""

from __future__ import annotations

import os


def leave_relative_entries_out() -> None:
    """For this process, and for everything that it starts."""
    os.environ["PATH"] = absolute_entries(os.environ.get("PATH", ""))


def absolute_entries(path: str) -> str:
    return os.pathsep.join(filter(os.path.isabs, path.split(os.pathsep))) or os.defpath


def find_program(name: str, path: str) -> str | None:
    """As `shutil.which` does; without `shutil`, which takes as long to load as a git process to run."""
    if os.path.dirname(name):
        return name if _can_run(name) else None
    places = (os.path.join(directory, name) for directory in absolute_entries(path).split(os.pathsep))
    return next(filter(_can_run, places), None)


def _can_run(file: str) -> bool:
    return os.access(file, os.X_OK) and not os.path.isdir(file)
