"""What a repository's settings would run around a builder, and its user's consent to it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_farm.consent import Ask, Request, require_consent
from agent_farm.farm.farm import Farm
from agent_farm.farm.runtime import Chosen
from agent_farm.paths import SETTINGS_NAME
from agent_farm.runtimes.origin import repository_program


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
    program = repository_program(farm.root, chosen.name, chosen.command)
    if program and named:
        require_consent(farm.root, [program], yes=True, ask=None)
    elif program:
        more = (*more, program)
    commands = [(key, farm.settings.text(key)) for key in ("worktree.setup", "notify.command")]
    requests = [Request(f"{SETTINGS_NAME} {key}", command) for key, command in commands if command]
    require_consent(farm.root, [*more, *requests], yes=yes, ask=ask)
