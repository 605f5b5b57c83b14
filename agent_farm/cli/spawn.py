"""`af spawn`."""

from __future__ import annotations

import json
import os
import shlex
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.fields import offer
from agent_farm.cli.options import text_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.errors import UsageError
from agent_farm.operations.spawn import OneOfSeveral, PlanShown, Spawned

EPILOG = """\b
Modes, with an example each:
  task      af spawn "Fix the login redirect"
            af spawn "Fix the login redirect" --files src/auth.py,src/login.py
            af spawn --task "Refactor the logging"
            af spawn --task-file todo.md        (- reads standard input)
  spec      af spawn --project 0009             (codev/specs/0009-*.md)
            af spawn --project 0009 --protocol spir
  issue     af spawn --issue 42                 (through gh or glab)
            af spawn --issue 42 --protocol bugfix
  item      af spawn --spec specs/003-login     (all of it)
            af spawn --spec specs/003-login --item T012
            af spawn --spec todo.md --item all  (a builder each, in order)
  several   af spawn --tasks-file todo.md       (paragraphs, list or JSON)
            af spawn "Fix the login" -n 3 --runtimes claude-code,codex
  protocol  af spawn --protocol cleanup         (codev/protocols/cleanup/)
            af spawn --protocol experiment --args '{"hypothesis": "…"}'
  shell     af spawn --shell                    (no prompt, no role)
            af spawn --shell --role custom.md

\b
A task that begins with a dash goes after --:
  af spawn -- "-rf is not handled by the parser"
"""


def _request(values: dict[str, Any]) -> dict[str, Any]:
    if values["attach"] and values["as_json"]:
        raise UsageError("Flags are mutually exclusive: --attach, --json", hint="af spawn --help")
    text = _text(values["words"])
    task = _task(text, values["task"], values["task_file"])
    if text is not None and task is not None:
        raise UsageError(
            "Give the task once", why="It is given both as an argument and as --task.", hint="af spawn --help"
        )
    several = values["tasks_file"]
    return {
        "task": text if text is not None else task,
        "files": _split(values["files"]),
        "sparse": _split(values["sparse"], "--sparse names no directory"),
        "tasks": _read_text(several) if several is not None else None,
        "runtimes": _split(values["runtimes"], "--runtimes names no runtime"),
    }


def _require_attachable(typed: Typed) -> None:
    if typed.values["attach"] and not typed.request.dry_run:
        from agent_farm.cli.attach import require_attachable  # imports statuses, which no other spawn needs

        require_attachable(typed.context.farm)


def _show(part: Spawned | OneOfSeveral) -> None:
    found = part.spawned if isinstance(part, OneOfSeveral) else part
    if found.plan is not None:
        _show_plan(found.plan)
    if found.builder is None:
        return
    one = found.builder
    answer(one.id)
    if one.status.state == "queued":
        narrate(printable(f"It waits: {one.status.reason}."))
        narrate_hint("af queue")
    else:
        place = (
            f"{one.host}:{one.worktree}"
            if one.host
            else min(one.worktree, os.path.relpath(one.worktree), key=len)
        )
        narrate(printable(f"{one.runtime} starts on {one.branch} in {place}"))
        if found is part:
            narrate_hint(f"af attach {one.id}")


def _attach(typed: Typed, found: Spawned) -> None:
    one = found.builder
    if typed.values["attach"] and one is not None and one.status.state != "queued":
        from agent_farm.cli.attach import attach_elsewhere, attach_to

        if one.host:
            attach_elsewhere(typed.context.farm, one.id)
        attach_to(one)


def _text(words: tuple[str, ...]) -> str | None:
    """The task; several words mean that the quotes were forgotten."""
    if len(words) < 2:
        return words[0] if words else None
    raise UsageError(
        f"Got {len(words)} words where one task was expected",
        why="Put the task in quotes.",
        hint=f"af spawn {_quoted(' '.join(words))}",
    )


def _quoted(text: str) -> str:
    """`text` quoted for a shell, in double quotes if nothing in it has a meaning inside them."""
    quoted = shlex.quote(text) if any(char in text for char in '"\\$`!') else f'"{text}"'
    return f"-- {quoted}" if text.startswith("-") else quoted


def _task(text: str | None, task: str | None, file: str | None) -> str | None:
    if file is None:
        return task
    other = "as --task" if task is not None else "as an argument" if text is not None else None
    if other:
        raise UsageError(
            "Give the task once", why=f"It is given both {other} and as --task-file.", hint="af spawn --help"
        )
    return _read_text(file)


def _read_text(file: str) -> str:
    if file == "-":
        return text_of(sys.stdin.buffer.read(), "Standard input")
    return text_of(_read(Path(file)), file)


def _read(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise UsageError(f"Cannot read the task from {path}", why=error.strerror) from error


def _split(files: tuple[str, ...], none: str = "--files names no file") -> tuple[str, ...]:
    names = tuple(name.strip() for part in files for name in part.split(",") if name.strip())
    if files and not names:
        raise UsageError(none, hint="af spawn --help")
    return names


def _show_plan(plan: PlanShown) -> None:
    for name in plan.__struct_fields__:
        value = getattr(plan, name)
        if value not in (None, (), ""):
            answer(f"{name:<13} {_shown(value)}")


def _shown(value: object) -> str:
    if isinstance(value, tuple):
        text = ", ".join(map(str, value))
    elif isinstance(value, Mapping):
        text = json.dumps(value, ensure_ascii=False)
    else:
        text = str(value)
    return printable(text).replace("\n", "\n" + " " * 14)


spawn = command_of(
    Way("spawn", _show, build=_request, before=_require_attachable, after=_attach),
    params={"tasks": None},
    also=[
        click.Argument(["words"], metavar="[TASK]", nargs=-1),
        click.Option(
            ["--task-file"],
            metavar="PATH",
            type=click.Path(allow_dash=True),
            help="Read the task from a file, or from standard input with -.",
        ),
        click.Option(
            ["--tasks-file"],
            metavar="PATH",
            type=click.Path(allow_dash=True),
            help="A builder for each task in a file: paragraphs, open items of a check list, or JSON lines.",
        ),
        click.Option(["--attach"], is_flag=True, help="Attach to the builder right away."),
    ],
    words={"copies": "-n", "tasks": "--tasks-file"},
    short={"project": "-p"},
    metavars={
        "project": "ID",
        "issue": "N",
        "spec": "PATH",
        "item": "ID",
        "protocol": "NAME",
        "files": "A,B",
        "sparse": "A,B",
        "args": "JSON",
        "role": "FILE",
        "on": "HOST",
        "base": "REF",
        "branch": "EXISTING",
        "name": "NAME",
        "after": "ID",
        "stack": "ID",
        "copies": "N",
        "runtimes": "A,B",
    },
    complete={
        "project": offer("complete_projects"),
        "spec": offer("complete_path"),
        "protocol": offer("complete_protocols"),
        "files": offer("complete_files"),
        "sparse": offer("complete_directories"),
        "role": offer("complete_path"),
        "base": offer("complete_branches"),
        "branch": offer("complete_branches"),
        "after": offer("complete_after"),
        "stack": offer("complete_ids"),
        "on": offer("complete_machines"),
        "runtimes": offer("complete_runtimes_of_several"),
    },
    epilog=EPILOG,
)
