"""What a repository's settings would run around a builder, and its user's consent to it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agent_farm.consent import Ask, Request, require_consent
from agent_farm.farm.farm import Farm
from agent_farm.farm.runtime import Chosen
from agent_farm.paths import SETTINGS_NAME
from agent_farm.runtimes import ADAPTERS


def agree_to_commands(
    farm: Farm,
    chosen: Chosen,
    *,
    named: bool = False,
    more: Sequence[Request] = (),
    yes: bool = False,
    ask: Ask | None = None,
) -> None:
    """ConsentNeeded unless every command, and what `more` holds, was agreed to in its present form.

    A runtime that the user `named` is agreed to by that, and from then on.
    """
    program = _program(farm, chosen)
    if program and named:
        require_consent(farm.root, [program], yes=True, ask=None)
    elif program:
        more = (*more, program)
    commands = [(key, farm.settings.text(key)) for key in ("worktree.setup", "notify.command")]
    requests = [Request(f"{SETTINGS_NAME} {key}", command) for key, command in commands if command]
    require_consent(farm.root, [*more, *requests], yes=yes, ask=ask)


def _program(farm: Farm, chosen: Chosen) -> Request | None:
    """The program that the repository put in the runtime's place, or declared as a runtime."""
    if chosen.command:
        return Request(f"{SETTINGS_NAME} runtimes.{chosen.name}.command", " ".join(chosen.command))
    if chosen.name in ADAPTERS:
        return None
    from agent_farm.runtimes.external_config import FILE_NAME, load_external_runtimes

    declared = load_external_runtimes(farm.root)[chosen.name]
    return Request(f"{FILE_NAME} {chosen.name}", os.path.relpath(declared.adapter, farm.root))
