"""Over MCP nobody agrees to a repository's commands: only what its user agreed to before is run."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from contextlib import contextmanager

from agent_farm.consent import require_consent
from agent_farm.errors import ConsentNeeded
from agent_farm.farm.farm import Farm
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.origin import repository_program


@contextmanager
def agreed_before(command: str) -> Iterator[None]:
    """Says, with what was refused, who can agree and by which command."""
    try:
        yield
    except ConsentNeeded as error:
        error.why = "No tool agrees to that: ask the repository's user to read it and to agree once."
        error.hint = command
        raise


def require_agreed_runtime(farm: Farm, name: str | None) -> None:
    """ConsentNeeded for a program of the repository: a person who names it agrees, a program does not."""
    if name is None or name not in adapter_names(farm.root):
        return
    command = farm.settings.runtime(name).command
    program = repository_program(farm.root, name, shlex.split(command) if command else None)
    if program:
        require_consent(farm.root, [program], yes=False, ask=None)
