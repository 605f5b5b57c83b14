"""Values of the environment that a kill left on disk: the launcher forgets them, if it comes to that."""

from __future__ import annotations

import json
from contextlib import suppress

from agent_farm.disk import stale_temporaries
from agent_farm.errors import DamagedFile
from agent_farm.own_files import read_own
from agent_farm.pane.launchfile import NotLaunchable, forget_environment
from agent_farm.paths import RunPaths


def has_secrets(run: RunPaths) -> bool:
    """An environment in `launch.json`, or in a copy of it that was never renamed."""
    if stale_temporaries(run.directory):
        return True
    try:
        document = json.loads(read_own(run.launch))
        return isinstance(document, dict) and document.get("env") is not None
    except (OSError, ValueError, RecursionError, DamagedFile):
        return False


def forget_secrets(run: RunPaths) -> None:
    """Only for a builder whose launcher is gone: the next start writes a new one."""
    for path in stale_temporaries(run.directory):
        path.unlink(missing_ok=True)
    if has_secrets(run):
        with suppress(NotLaunchable, OSError):  # a full disk: doctor tells of it
            forget_environment(run.directory)
