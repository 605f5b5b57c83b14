"""`init`: what a repository needs to be a farm, and nothing that is there already."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from agent_farm.errors import UsageError
from agent_farm.farm.from_codev import init_from_codev
from agent_farm.farm.ignore_lines import IgnoreLine, ignore_lines
from agent_farm.farm.scaffolding import SKILL_PLACES, InitReport, init_farm
from agent_farm.git.locate import locate
from agent_farm.operations.operation import Answer, Context, Request, acts
from agent_farm.paths import SETTINGS_NAME


class Init(Request):
    skill: Annotated[
        bool,
        Meta(
            description="Also write the skill by which an AI session drives the farm, where AI CLIs look for "
            "one: .claude/skills and .agents/skills"
        ),
    ] = False
    from_codev: Annotated[
        bool,
        Meta(
            description="Take over a repository that codev set up: its .codev/config.json is translated into "
            "agent-farm.toml, its protocols and roles stay as they are"
        ),
    ] = False


class Translated(Answer):
    """`key` is of codev's file, `settings` are what it became in agent-farm.toml."""

    key: str
    settings: dict[str, str | tuple[str, ...]]


class NotTranslated(Answer):
    key: str
    why: str


class Written(Answer):
    """`created` and `kept` are files relative to `root`; `hint` is the command that commits them.

    `ignore_lines` are for tools of the repository that would walk into builders' files.
    """

    root: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    ignore_lines: tuple[IgnoreLine, ...]
    hint: str | None
    translated: Annotated[tuple[Translated, ...], Meta(description="With from_codev")] = ()
    not_translated: Annotated[
        tuple[NotTranslated, ...], Meta(description="With from_codev: what af has no equal of, and why")
    ] = ()
    checks: Annotated[
        dict[str, str],
        Meta(description="Checks that codev's protocols run, by name: to be stored as check.NAME.command"),
    ] = msgspec.field(default_factory=dict)

    @property
    def has_skill(self) -> bool:
        return not set(SKILL_PLACES).isdisjoint(self.created + self.kept)


def _init(context: Context, request: Init) -> Written:
    here = context.directory or context.farm.root
    if request.from_codev:
        return _from_codev(here, request)
    report = init_farm(here, skill=request.skill)
    return Written(
        root=str(report.root),
        created=report.created,
        kept=report.kept,
        ignore_lines=report.ignore_lines,
        hint=_commit(report, here) if report.created else None,
    )


def _from_codev(here: Path, request: Init) -> Written:
    if request.skill:
        raise UsageError("Flags are mutually exclusive: --skill, --from-codev", hint="af init --help")
    root = locate(here).checkout
    found = init_from_codev(root)
    changed = bool(found.created or found.equals)
    return Written(
        root=str(root),
        created=found.created,
        kept=found.kept,
        ignore_lines=ignore_lines(root),
        hint=_commit(InitReport(root, found.created, found.kept, ()), here) if changed else None,
        translated=tuple(Translated(one.key, _plain(one.settings)) for one in found.equals),
        not_translated=tuple(NotTranslated(one.key, one.why) for one in found.left),
        checks=dict(found.offered),
    )


def _plain(settings: Mapping[str, Any]) -> dict[str, str | tuple[str, ...]]:
    return {name: value if isinstance(value, str) else tuple(value) for name, value in settings.items()}


def _commit(report: InitReport, here: Path) -> str:
    """git adds nothing by a path that leads through a link."""
    root = report.root.resolve()
    skills = [
        (root / name).resolve().relative_to(root).as_posix()
        for name in report.created
        if name in SKILL_PLACES
    ]
    # files that an earlier init wrote may not be committed yet
    written = (*report.created, *report.kept)
    codev = ["codev"] if any(name.startswith("codev/") for name in written) else []
    files = shlex.join([*codev, SETTINGS_NAME, *skills])
    command = f'git add {files} && git commit -m "Set up agent-farm"'
    is_here = here.resolve() == root
    return command if is_here else f"cd {shlex.quote(str(report.root))} && {command}"


INIT = acts(
    "init",
    "Write codev/ and agent-farm.toml: roles, protocols, templates and settings to start from",
    Init,
    Written,
    _init,
    tolerant=True,
    repeats=True,
    details="Files that exist are kept as they are. Nothing is committed.",
)
