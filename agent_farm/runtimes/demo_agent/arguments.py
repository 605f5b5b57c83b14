"""The demo agent's command line."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

_CHOICES = {"mode": ("interactive", "headless"), "--permissions": ("ask", "edit", "all")}
_PATHS = ("--home", "--prompt-file", "--role-file", "--mcp-config")
_SEVERAL = ("--read", "--keep")
_KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys((*_PATHS, *_SEVERAL), Path),
    **dict.fromkeys(("--conversation", "--resume", "--model", "--permissions"), str),
    "--hook": json.loads,
}


class Arguments:
    mode = "interactive"
    home: Path | None = None
    prompt_file: Path | None = None
    role_file: Path | None = None
    mcp_config: Path | None = None
    conversation: str | None = None
    resume: str | None = None
    permissions = "edit"
    model = "demo-1"

    def __init__(self, **given: Any) -> None:
        self.hook = list[str]()
        self.read = list[Path]()
        self.keep = list[Path]()
        vars(self).update(given)

    @property
    def role(self) -> str:
        return self.role_file.read_text(encoding="utf-8") if self.role_file else ""


def parse_arguments(words: list[str]) -> Arguments:
    """A mode, and options with a value each. Ends the process with 2, and a line on stderr, when there is
    another word."""
    mode, rest = words[0] if words else "", words[1:]
    found = Arguments(mode=_chosen("mode", mode))
    if len(rest) % 2:
        _refuse(rest[-1])
    for option, text in zip(rest[::2], rest[1::2], strict=True):
        if option not in _KINDS:
            _refuse(option)
        name, value = option[2:].replace("-", "_"), _KINDS[option](_chosen(option, text))
        if option in _SEVERAL:
            getattr(found, name).append(value)
        else:
            setattr(found, name, value)
    return found


def _chosen(what: str, word: str) -> str:
    if word not in _CHOICES.get(what, (word,)):
        _refuse(word)
    return word


def _refuse(word: str) -> None:
    sys.stderr.write(f"demo: it does not know {word!r}\n")
    sys.exit(2)
