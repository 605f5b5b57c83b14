"""The four modes of `af spawn`: which flags make which, and which do not go together."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from agent_farm.errors import UsageError

EXAMPLES = (
    ("spec", "af spawn --project 0009"),
    ("task", 'af spawn "Fix the login redirect" --files src/auth.py,src/login.py'),
    ("protocol", 'af spawn --protocol experiment --args \'{"hypothesis": "Redis is faster"}\''),
    ("shell", "af spawn --shell"),
)


@dataclass(frozen=True, slots=True)
class Flags:
    """What was asked for, word by word; None and empty mean not given."""

    text: str | None = None
    task: str | None = None
    project: str | None = None
    protocol: str | None = None
    shell: bool = False
    files: tuple[str, ...] = ()
    args: str | None = None


@dataclass(frozen=True, slots=True)
class SpecMode:
    project: str


@dataclass(frozen=True, slots=True)
class TaskMode:
    text: str
    files: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class ProtocolMode:
    name: str
    args: Mapping[str, Any] | None = None


@dataclass(frozen=True, slots=True)
class ShellMode:
    pass


Mode = SpecMode | TaskMode | ProtocolMode | ShellMode

_HELP = "af spawn --help"


def choose_mode(flags: Flags) -> Mode:
    """Exactly one mode, or a UsageError that says which flags are in each other's way."""
    _require_one_mode(flags)
    if flags.files and flags.text is None and flags.task is None:
        raise UsageError("--files requires a task", hint='af spawn "Fix auth" --files src/auth.py')
    if flags.args is not None and flags.protocol is None:
        raise UsageError("--args requires --protocol", hint=EXAMPLES[2][1])
    if flags.project is not None:
        return SpecMode(_required(flags.project, "--project"))
    if flags.protocol is not None:
        return ProtocolMode(_required(flags.protocol.rstrip("/"), "--protocol"), parse_args(flags.args))
    if flags.shell:
        return ShellMode()
    text = flags.text if flags.text is not None else flags.task
    if text is None:
        raise UsageError(
            "Nothing to spawn",
            why="Say what the builder is to do, in one of four ways.",
            evidence=[f"{name:<9} {example}" for name, example in EXAMPLES],
            hint=_HELP,
        )
    return TaskMode(require_task_text(text), flags.files)


def _require_one_mode(flags: Flags) -> None:
    exclusive = [
        name
        for name, given in (
            ("--project", flags.project is not None),
            ("--protocol", flags.protocol is not None),
            ("--shell", flags.shell),
        )
        if given
    ]
    has_text = flags.text is not None or flags.task is not None
    if len(exclusive) > 1:
        raise UsageError(f"Flags are mutually exclusive: {', '.join(exclusive)}", hint=_HELP)
    if has_text and exclusive == ["--project"]:
        raise UsageError("Cannot combine --project with task text", hint=_HELP)
    if has_text and exclusive == ["--protocol"]:
        raise UsageError("Cannot combine task text with --protocol", hint=_HELP)
    if has_text and exclusive:
        raise UsageError("Flags are mutually exclusive: task text, --shell", hint=_HELP)
    if flags.text is not None and flags.task is not None:
        raise UsageError("Give the task once", why="It is there as an argument and as --task.", hint=_HELP)


def _required(value: str, flag: str) -> str:
    if not value.strip():
        raise UsageError(f"{flag} is empty", hint=_HELP)
    return value


def require_task_text(text: str) -> str:
    if not text.strip():
        raise UsageError("The task text is empty", hint=EXAMPLES[1][1])
    if "\0" in text:
        raise UsageError("The task text holds a NUL byte", why="No program could be given it.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "The task text is not valid UTF-8", why=f"The first bad byte is at character {error.start}."
        ) from error
    return text


def parse_args(text: str | None) -> Mapping[str, Any] | None:
    """The object, or a UsageError that says where it breaks.

    What only Python takes for JSON (NaN, half a surrogate pair) is refused: the prompt has to show it.
    """
    if text is None:
        return None
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} at line {error.lineno}, column {error.colno}.") from error
    except UnicodeEncodeError as error:
        raise _not_json("A text in it is not valid UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise _not_json(f"{error}.") from error
    if not isinstance(value, dict):
        raise UsageError(
            "--args must be a JSON object", why=f"It is {text.strip()[:60]}", hint=EXAMPLES[2][1]
        )
    return value


def _not_json(why: str) -> UsageError:
    return UsageError("--args is not valid JSON", why=why, hint=EXAMPLES[2][1])
