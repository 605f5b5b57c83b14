"""Translates codev's `.codev/config.json` into `agent-farm.toml` settings; reads and writes no file."""

from __future__ import annotations

import re
import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_farm.runtimes import ADAPTERS, get_adapter

Settings = Mapping[str, str | list[str]]

_FORGES = {"github": "gh", "gitlab": "glab"}
_ALLOW_ALL = frozenset(
    {
        "--dangerously-skip-permissions",
        "--dangerously-bypass-approvals-and-sandbox",
        "--yolo",
        "--allow-all-tools",
    }
)
CHECK_NAME = re.compile(r"(?!(?:command|seconds|auto)\Z)[A-Za-z0-9_-]{1,40}")
_WHY = {
    "shell.architect": "the architect is any session with af mcp, or any shell",
    "shell.shell": "a builder's shell is $SHELL",
    "worktree.devUrls": "there is no list of links; a server's port is AF_PORT",
    "porch.consultation": "there is no consult; spawn a builder for the review",
    "worktree.devCommand": "run it in a builder, on AF_PORT; af serve ID passes a fixed port on to it",
    "roles.dir": "roles are read from codev/roles",
    "templates.dir": "prompts are read from codev/protocols",
}
_NOTHING_LIKE_IT = "af has no equivalent"


class Equal(Struct, frozen=True):
    """`settings` in agent-farm.toml mean what `key` means in codev's file."""

    key: str
    settings: Settings


class Left(Struct, frozen=True):
    key: str
    why: str


def translate(config: Mapping[str, Any]) -> Iterator[Equal | Left]:
    """Translate each key of codev's file separately."""
    for key, value in _flattened(config):
        if key not in _EQUALS:
            yield Left(key, _WHY.get(key, _NOTHING_LIKE_IT))
            continue
        try:
            yield from _EQUALS[key](key, value)
        except (TypeError, ValueError, AttributeError) as error:
            yield Left(key, f"not understood: {error}")


def _flattened(config: Mapping[str, Any]) -> Iterator[tuple[str, Any]]:
    for table, content in config.items():
        if isinstance(content, Mapping):
            yield from ((f"{table}.{name}", value) for name, value in content.items())
        else:
            yield table, content


def _runtimes() -> dict[str, str]:
    """The runtimes, by the program that codev starts."""
    return {get_adapter(name).binary_name: name for name in ADAPTERS if name != "demo"}


def _builder(key: str, value: object) -> Iterator[Equal | Left]:
    words = shlex.split(value) if isinstance(value, str) else _texts(value)
    program, *args = words
    runtime = _runtimes().get(program.rpartition("/")[2])
    if runtime is None:
        yield Left(key, f"no runtime drives {program}; af adapter shows how to declare one")
        return
    found: dict[str, str | list[str]] = {"spawn.runtime": runtime}
    if "/" in program:
        found[f"runtimes.{runtime}.command"] = program
    if not _ALLOW_ALL.isdisjoint(args):
        found["spawn.permissions"] = "all"
        args = [word for word in args if word not in _ALLOW_ALL]
    if "--model" in args[:-1]:
        at = args.index("--model")
        found[f"runtimes.{runtime}.model"] = args[at + 1]
        args = [*args[:at], *args[at + 2 :]]
    if args:
        found[f"runtimes.{runtime}.args"] = args
    yield Equal(key, found)


def _harness(key: str, value: object) -> Iterator[Equal | Left]:
    runtime = _runtimes().get(str(value))
    yield Equal(key, {"spawn.runtime": runtime}) if runtime else Left(key, f"there is no runtime {value}")


def _files(key: str, value: object) -> Iterator[Equal | Left]:
    if names := _texts(value):
        yield Equal(key, {"worktree.link": names})


def _setup(key: str, value: object) -> Iterator[Equal | Left]:
    """Each command runs in its own subshell, as it did in codev, so that no `cd` affects the next."""
    commands = _texts(value)
    if commands:
        joined = commands[0] if len(commands) == 1 else " && ".join(f"( {one} )" for one in commands)
        yield Equal(key, {"worktree.setup": joined})


def _checks(key: str, value: object) -> Iterator[Equal | Left]:
    if not isinstance(value, Mapping):
        raise TypeError("it is not a table")
    for name, check in value.items():
        own = f"{key}.{name}"
        command = check.get("command")
        if check.get("skip"):
            yield Left(own, "checks that are not declared do not run")
        elif not isinstance(command, str) or not command.strip():
            yield Left(own, "it has no command of its own")
        elif not CHECK_NAME.fullmatch(name):
            yield Left(own, "a check cannot have this name")
        else:
            place = check.get("cwd")
            text = f"cd {shlex.quote(str(place))} && {command}" if place else command
            yield Equal(own, {f"check.{name}.command": text})


def _forge(key: str, value: object) -> Iterator[Equal | Left]:
    command = _FORGES.get(str(value))
    if command:
        yield Equal(key, {"forge.command": command})
    else:
        yield Left(key, "issues are read from GitHub and GitLab; af spawn --task-file - reads any text")


def _texts(value: object) -> list[str]:
    if not isinstance(value, Sequence) or isinstance(value, str):
        raise TypeError("it is not a list")
    if not all(isinstance(one, str) for one in value):
        raise TypeError("it contains something that is not text")
    return [one for one in value if one.strip()]


_EQUALS: Mapping[str, Callable[[str, Any], Iterator[Equal | Left]]] = {
    "shell.builder": _builder,
    "shell.builderHarness": _harness,
    "worktree.symlinks": _files,
    "worktree.postSpawn": _setup,
    "porch.checks": _checks,
    "forge.provider": _forge,
}
