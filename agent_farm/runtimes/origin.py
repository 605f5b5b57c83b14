"""Programs that a repository puts in the place of a runtime: its user agrees before they run."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from agent_farm.consent import Request
from agent_farm.paths import SETTINGS_NAME
from agent_farm.runtimes import ADAPTERS


def repository_program(root: Path, name: str, command: Sequence[str] | None) -> Request | None:
    """What to ask about before the runtime `name` is started; None when nothing of it is the repository's."""
    if command:
        return Request(f"{SETTINGS_NAME} runtimes.{name}.command", " ".join(command))
    if name in ADAPTERS:
        return None
    from agent_farm.runtimes.external_config import FILE_NAME, load_external_runtimes

    runtime = load_external_runtimes(root)[name]
    return None if runtime.shipped else Request(f"{FILE_NAME} {name}", os.path.relpath(runtime.adapter, root))
