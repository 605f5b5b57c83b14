"""Answers an ACP agent's permission requests from the run's permissions, since nobody is there to ask."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

_LOOKS = ("read", "search", "think")
_CHANGES = ("edit", "delete", "move")
_SHELLS_OWN = re.compile(r"[;&|<>()$`\\\n]")


@dataclass(frozen=True, slots=True)
class AskedCall:
    """A tool call: `titles` are all names it was given, `paths` all paths that it mentions."""

    kind: str | None
    titles: tuple[str, ...] = ()
    paths: tuple[str, ...] = ()
    command: str = ""


@dataclass(frozen=True, slots=True)
class Rules:
    """`server` is the farm's, `commands` start the directory's own skills; for the rest see Bounds."""

    permissions: str
    server: str
    cwd: str
    reads: Sequence[str] = ()
    hides: Sequence[str] = ()
    keeps: Sequence[str] = ()
    commands: Sequence[str] = ()

    def allow(self, asked: AskedCall) -> bool:
        if self.permissions == "all":
            return True
        if asked.kind in _LOOKS:
            places = (self.cwd, *self.reads)
            return all(_lies_in(path, self.cwd, places) for path in asked.paths) and self._shows(asked)
        if asked.kind in _CHANGES:
            inside = all(_lies_in(path, self.cwd, (self.cwd,)) for path in asked.paths)
            kept = any(_lies_in(path, self.cwd, (*self.keeps, *self.hides)) for path in asked.paths)
            return self.permissions == "edit" and inside and not kept
        if asked.kind == "execute":
            return self.permissions == "edit" and self._is_skill(asked.command)
        return asked.kind in (None, "other") and self._is_the_farms(asked.titles)

    def _shows(self, asked: AskedCall) -> bool:
        return not any(_lies_in(path, self.cwd, self.hides) for path in asked.paths)

    def _is_the_farms(self, titles: Sequence[str]) -> bool:
        """Agents write the name in various ways: farm_send, farm-send, send (farm MCP Server)."""
        word = re.compile(rf"(?<![A-Za-z0-9]){re.escape(self.server)}(?![A-Za-z0-9])")
        return any(word.search(title) for title in titles)

    def _is_skill(self, command: str) -> bool:
        if _SHELLS_OWN.search(command):
            return False
        try:
            words = shlex.split(command)
        except ValueError:
            return False
        skills = (shlex.split(skill) for skill in self.commands)
        return any(words[: len(skill)] == skill for skill in skills)


def asked_of(call: Mapping[str, Any], before: Mapping[str, Any]) -> AskedCall:
    """From a permission request, and what was reported of the same call `before`."""
    parts = (before, call)
    given = {**_table(before.get("rawInput")), **_table(call.get("rawInput"))}
    titles = tuple(str(part["title"]) for part in parts if part.get("title"))
    command = given.get("command")
    return AskedCall(
        kind=call.get("kind") or before.get("kind"),
        titles=titles,
        paths=tuple(
            str(place["path"])
            for part in parts
            for place in (*(part.get("locations") or ()), *(part.get("content") or ()))
            if place.get("path")
        ),
        command=command if isinstance(command, str) else titles[-1] if titles else "",
    )


def option_for(options: Sequence[Mapping[str, Any]], *, allowed: bool) -> str | None:
    """The option for this one time, or for ever if there is no other; None means cancel."""
    word = "allow" if allowed else "reject"
    ids = {option["kind"]: str(option["optionId"]) for option in options}
    return ids.get(f"{word}_once") or ids.get(f"{word}_always")


def _table(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, Mapping) else {}


def _lies_in(path: str, cwd: str, places: Sequence[str]) -> bool:
    """Follows links: what is written through a link is where the link leads."""
    real = Path(os.path.realpath(os.path.join(cwd, path)))
    return any(real.is_relative_to(os.path.realpath(place)) for place in places)
