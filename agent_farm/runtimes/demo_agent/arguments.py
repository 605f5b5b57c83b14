"""The demo agent's command line."""

from __future__ import annotations

import sys

from agent_farm.lean import loads

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

_CHOICES = {"mode": ("interactive", "headless"), "--permissions": ("ask", "edit", "all")}
_TEXTS = (
    "--home", "--prompt-file", "--role-file", "--mcp-config",
    "--conversation", "--resume", "--model", "--permissions",
)  # fmt: skip
_SEVERAL = ("--read", "--keep")
_KINDS: dict[str, Callable[[str], Any]] = {
    **dict.fromkeys((*_TEXTS, *_SEVERAL), str),
    "--hook": loads,
}


class Arguments:
    mode = "interactive"
    home: str | None = None
    prompt_file: str | None = None
    role_file: str | None = None
    mcp_config: str | None = None
    conversation: str | None = None
    resume: str | None = None
    permissions = "edit"
    model = "demo-1"

    def __init__(self, **given: Any) -> None:
        self.hook = list[str]()
        self.read = list[str]()
        self.keep = list[str]()
        vars(self).update(given)

    @property
    def role(self) -> str:
        if not self.role_file:
            return ""
        with open(self.role_file, encoding="utf-8") as file:
            return file.read()


def parse_arguments(words: list[str]) -> Arguments:
    """Parse a mode and options with one value each; anything else ends the process with 2."""
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
    sys.stderr.write(f"demo: unknown argument {word!r}\n")
    sys.exit(2)
