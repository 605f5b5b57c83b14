"""`init`: write what a repository needs to be a farm, without touching files that exist."""

from __future__ import annotations

import shlex
from collections.abc import Sequence
from pathlib import Path
from typing import Annotated

import msgspec
from msgspec import Meta

from agent_farm.errors import UsageError
from agent_farm.farm.codev_config import Equal, Left
from agent_farm.farm.from_codev import init_from_codev
from agent_farm.farm.ignore_lines import IgnoreLine, ignore_lines
from agent_farm.farm.scaffolding import SKILL_PLACES, init_farm
from agent_farm.git.locate import locate
from agent_farm.operations.declare import acts
from agent_farm.operations.operation import Answer, Context, Request
from agent_farm.paths import SETTINGS_NAME


class Init(Request):
    skill: Annotated[
        bool,
        Meta(
            description="Also write the skill that tells an AI session how to drive the farm to the places"
            " where AI CLIs look: .claude/skills and .agents/skills"
        ),
    ] = False
    from_codev: Annotated[
        bool,
        Meta(
            description="Take over a repository that codev set up: its .codev/config.json is translated into "
            "agent-farm.toml, its protocols and roles stay as they are"
        ),
    ] = False


class Written(Answer):
    """`created` and `kept` are files relative to `root`; `hint` is the command that commits them.

    `ignore_lines` are for the repository's tools that would otherwise walk into builders' files.
    """

    root: str
    created: tuple[str, ...]
    kept: tuple[str, ...]
    ignore_lines: tuple[IgnoreLine, ...]
    hint: str | None
    translated: Annotated[tuple[Equal, ...], Meta(description="With from_codev")] = ()
    not_translated: Annotated[
        tuple[Left, ...], Meta(description="With from_codev: keys without an equivalent in af, and why")
    ] = ()
    checks: Annotated[
        dict[str, str],
        Meta(description="Checks that codev's protocols run, by name; store them as check.NAME.command"),
    ] = msgspec.field(default_factory=dict)

    @property
    def has_skill(self) -> bool:
        return not set(SKILL_PLACES).isdisjoint(self.created + self.kept)


@acts(
    "Write codev/ and agent-farm.toml: roles, protocols, templates and settings to start from",
    tolerant=True,
    repeats=True,
    details="Files that exist are kept as they are. Nothing is committed.",
)
def init(context: Context, request: Init) -> Written:
    here = context.directory or context.farm.root
    if request.from_codev:
        return _from_codev(here, request)
    root = locate(here).checkout
    created, kept = init_farm(root, skill=request.skill)
    return Written(
        root=str(root),
        created=created,
        kept=kept,
        ignore_lines=ignore_lines(root),
        hint=_commit(root, created, kept, here) if created else None,
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
        hint=_commit(root, found.created, found.kept, here) if changed else None,
        translated=found.equals,
        not_translated=found.left,
        checks=dict(found.offered),
    )


def _commit(top: Path, created: Sequence[str], kept: Sequence[str], here: Path) -> str:
    """The command that commits it; links are resolved, because git adds nothing through one."""
    root = top.resolve()
    skills = [
        (root / name).resolve().relative_to(root).as_posix() for name in created if name in SKILL_PLACES
    ]
    # files that an earlier init wrote may not be committed yet
    codev = ["codev"] if any(name.startswith("codev/") for name in (*created, *kept)) else []
    files = shlex.join([*codev, SETTINGS_NAME, *skills])
    command = f'git add {files} && git commit -m "Set up agent-farm"'
    return command if here.resolve() == root else f"cd {shlex.quote(str(top))} && {command}"
