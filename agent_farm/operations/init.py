"""`init`: what a repository needs to be a farm, and nothing that is there already."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.farm.ignore_lines import IgnoreLine
from agent_farm.farm.scaffolding import SKILL_PLACES, InitReport, init_farm
from agent_farm.operations.operation import Answer, Context, Operation, Request, single
from agent_farm.paths import SETTINGS_NAME


class Init(Request):
    skill: Annotated[
        bool,
        Meta(
            description="Also write the skill by which an AI session drives the farm, where AI CLIs look for "
            "one: .claude/skills and .agents/skills"
        ),
    ] = False


class Written(Answer):
    """`created` and `kept` are files relative to `root`; `hint` is the command that commits them.

    `ignore_lines` are for tools of the repository that would walk into builders' files.
    """

    root: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    ignore_lines: tuple[IgnoreLine, ...]
    hint: str | None

    @property
    def has_skill(self) -> bool:
        return not set(SKILL_PLACES).isdisjoint(self.created + self.kept)


def _init(context: Context, request: Init) -> Written:
    here = context.directory or context.farm.root
    report = init_farm(here, skill=request.skill)
    return Written(
        root=str(report.root),
        created=report.created,
        kept=report.kept,
        ignore_lines=report.ignore_lines,
        hint=_commit(report, here) if report.created else None,
    )


def _commit(report: InitReport, here: Path) -> str:
    """git adds nothing by a path that leads through a link."""
    root = report.root.resolve()
    skills = [
        (root / name).resolve().relative_to(root).as_posix()
        for name in report.created
        if name in SKILL_PLACES
    ]
    files = shlex.join(["codev", SETTINGS_NAME, *skills])
    command = f'git add {files} && git commit -m "Set up agent-farm"'
    is_here = here.resolve() == root
    return command if is_here else f"cd {shlex.quote(str(report.root))} && {command}"


INIT = Operation(
    "init",
    "Write codev/ and agent-farm.toml: roles, protocols, templates and settings to start from",
    Init,
    Written,
    single(_init),
    effect="changes",
    tolerant=True,
    repeats=True,
    details="Files that exist are kept as they are. Nothing is committed.",
)
