"""Gemini merges the project's hooks into a trusted session; here are their names, to be switched off."""

from __future__ import annotations

import json
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.runtimes.worktree_files import directories_between


def foreign_hooks(top: Path, cwd: Path) -> list[str]:
    """What the project's settings call their hooks: a name, or the command itself."""
    names: list[str] = []
    for directory in directories_between(top, cwd):
        for groups in _hooks(directory / ".gemini" / "settings.json").values():
            for group in groups if isinstance(groups, list) else ():
                for hook in group.get("hooks") or () if isinstance(group, Mapping) else ():
                    if isinstance(hook, Mapping):
                        names += [str(hook[field]) for field in ("name", "command") if hook.get(field)]
    return list(dict.fromkeys(names))


def _hooks(path: Path) -> Mapping[str, Any]:
    with suppress(OSError, ValueError):
        hooks = json.loads(path.read_text(encoding="utf-8")).get("hooks")
        if isinstance(hooks, dict):
            return hooks
    return {}
