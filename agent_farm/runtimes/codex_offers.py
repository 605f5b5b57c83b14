"""Models for which codex offers another one when it starts: a dialog in which Enter would take that.

An offer that is marked as seen is not made. Which there are, codex says itself: the catalog in its program,
and a newer one that a login has fetched.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.runtimes.codex_lock import config_home, key_of
from agent_farm.runtimes.foreign import load_json

_SECONDS = 5.0
_CATALOG = ("debug", "models", "--bundled")


def offered_models(command: Sequence[str], env: Mapping[str, str], home: Path) -> dict[str, str]:
    """Model → the one that is offered for it."""
    offers = _offers(_bundled(command, {**env, "CODEX_HOME": str(home)}))
    return offers if key_of(env) else offers | _offers(load_json(config_home(env) / "models_cache.json"))


def _bundled(command: Sequence[str], env: Mapping[str, str]) -> Mapping[str, Any]:
    with suppress(OSError, subprocess.SubprocessError, ValueError):
        done = subprocess.run(
            [*command, *_CATALOG],
            env=env,
            cwd="/",
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=_SECONDS,
            check=True,
        )
        loaded = json.loads(done.stdout)
        return loaded if isinstance(loaded, dict) else {}
    return {}


def _offers(catalog: Mapping[str, Any]) -> dict[str, str]:
    found = {}
    with suppress(KeyError, TypeError):  # another form, of another version
        for model in catalog.get("models") or ():
            if offer := model.get("upgrade"):
                found[str(model["slug"])] = str(offer["model"])
    return found
