"""Finds the files in a commit that the checks run: named by a command, or run by another in turn."""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence

from agent_farm.consent import named_paths
from agent_farm.farm.farm import Farm
from agent_farm.git.git_process import ask_git

_DEPTH = 3
_MOST = 40
_LONGEST = 200_000  # bytes of a script that are read
# Files that a program reads without being given their names.
_IMPLIED = {
    "make": ("Makefile", "makefile", "GNUmakefile"),
    "npm": ("package.json",),
    "yarn": ("package.json",),
    "pnpm": ("package.json",),
    "tox": ("tox.ini",),
    "nox": ("noxfile.py",),
    "just": ("justfile", "Justfile"),
    "rake": ("Rakefile",),
    "task": ("Taskfile.yml",),
}
_RUN = re.compile(
    r"(?:^|[\s;&|(@\"'])(?:(?:sh|bash|zsh|dash|python[\d.]*|node|ruby|perl|source|\.)\s+(?:-\S+\s+)*|(?=\./))"
    r"([\w./-]+)"
)


def scripts_of(farm: Farm, commit: str, commands: Iterable[str]) -> frozenset[str]:
    """Paths in the tree of `commit`, found by matching words: a guess, good enough for a closer look."""
    found: dict[str, None] = {}
    wanted = [path for command in commands for path in (*named_paths(command), *_run_by(command))]
    for _ in range(_DEPTH):
        contents = _contents(farm, commit, [path for path in dict.fromkeys(wanted) if path not in found])
        found |= dict.fromkeys(contents)
        wanted = [path for text in contents.values() for path in _run_by(text)]
    return frozenset(found)


def _run_by(text: str) -> list[str]:
    words = set(re.findall(r"[\w.-]+", text))
    implied = [file for program, files in _IMPLIED.items() if program in words for file in files]
    return [*implied, *(os.path.normpath(match[1]) for match in _RUN.finditer(text))]


def _contents(farm: Farm, commit: str, paths: Sequence[str]) -> dict[str, str]:
    """The contents of those paths that are files there."""
    found = {}
    for path in paths[:_MOST]:
        status, output, _ = ask_git(farm.root, "cat-file", "blob", f"{commit}:{path}")
        if status == 0:
            found[path] = output[:_LONGEST].decode("utf-8", "replace")
    return found
