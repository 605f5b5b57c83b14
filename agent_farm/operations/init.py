"""`init`: what a repository needs to be a farm, and nothing that is there already."""

from __future__ import annotations

import os
import shlex
from pathlib import Path

from agent_farm.farm.ignore_lines import IgnoreLine
from agent_farm.farm.scaffolding import COMMIT, init_farm
from agent_farm.operations.operation import Answer, Context, Nothing, Operation, single


class Written(Answer):
    """`created` and `kept` are files relative to `root`; `hint` is the command that commits them.

    `ignore_lines` are for tools of the repository that would walk into builders' files.
    """

    root: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    ignore_lines: tuple[IgnoreLine, ...]
    hint: str | None


def _init(context: Context, request: Nothing) -> Written:
    here = context.directory or context.farm.root
    report = init_farm(here)
    return Written(
        root=str(report.root),
        created=report.created,
        kept=report.kept,
        ignore_lines=report.ignore_lines,
        hint=_commit(report.root, here) if report.created else None,
    )


def _commit(root: Path, here: Path) -> str:
    is_here = os.path.realpath(here) == os.path.realpath(root)
    return COMMIT if is_here else f"cd {shlex.quote(str(root))} && {COMMIT}"


INIT = Operation(
    "init",
    "Write codev/ and agent-farm.toml: roles, protocols, templates and settings to start from",
    Nothing,
    Written,
    single(_init),
    effect="changes",
    tolerant=True,
    repeats=True,
    details="Files that exist are kept as they are. Nothing is committed.",
)
