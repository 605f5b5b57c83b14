"""The demo agent's command line."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, replace
from pathlib import Path

_FILES = {
    "--home": "home",
    "--prompt-file": "prompt_file",
    "--role-file": "role_file",
    "--mcp-config": "mcp_config",
}


class UnknownArgument(Exception):
    pass


@dataclass(frozen=True, slots=True)
class Arguments:
    mode: str
    home: Path | None = None
    prompt_file: Path | None = None
    role_file: Path | None = None
    mcp_config: Path | None = None
    hook: tuple[str, ...] = ()
    conversation: str | None = None
    resume: bool = False
    permissions: str = "edit"
    model: str = "demo-1"
    reads: tuple[Path, ...] = ()
    keeps: tuple[Path, ...] = ()


def parse_arguments(argv: list[str]) -> Arguments:
    """`interactive` or `headless`, then options; UnknownArgument on anything else."""
    words = iter(argv)
    mode = next(words, "")
    if mode not in ("interactive", "headless"):
        raise UnknownArgument(f"expected interactive or headless, not {mode!r}")
    arguments = Arguments(mode)
    for word in words:
        arguments = _with_option(arguments, word, words)
    return arguments


def _with_option(arguments: Arguments, word: str, words: Iterator[str]) -> Arguments:
    value = next(words, None)
    if value is None:
        raise UnknownArgument(
            f"{word} needs a value" if word.startswith("--") else f"unknown argument {word}"
        )
    if word in _FILES:
        return replace(arguments, **{_FILES[word]: Path(value)})  # type: ignore[arg-type]
    if word == "--hook":
        return replace(arguments, hook=tuple(json.loads(value)))
    if word in ("--conversation", "--resume"):
        return replace(arguments, conversation=value, resume=word == "--resume")
    if word == "--permissions" and value in ("ask", "edit", "all"):
        return replace(arguments, permissions=value)
    if word == "--read":
        return replace(arguments, reads=(*arguments.reads, Path(value)))
    if word == "--keep":
        return replace(arguments, keeps=(*arguments.keeps, Path(value)))
    if word == "--model":
        return replace(arguments, model=value)
    raise UnknownArgument(f"unknown argument {word} {value}")
