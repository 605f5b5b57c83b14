"""Who a commit is by, for CLIs whose commands do not see the user's own git configuration."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Mapping
from pathlib import Path

_SECONDS = 5.0
_CALLERS = ("XDG_CONFIG_HOME", "GIT_CONFIG_GLOBAL", "GIT_CONFIG_SYSTEM", "GIT_CONFIG_NOSYSTEM")
_ASK = ("git", "config", "--null", "--get-regexp", r"^(user|author|committer)\.(name|email)$")


def identity_environment(cwd: Path, env: Mapping[str, str]) -> dict[str, str]:
    """GIT_AUTHOR_* and GIT_COMMITTER_* as git itself would choose them in `cwd`; what `env` has, stays.

    Reading a configuration runs nothing of the repository's.
    """
    asked = {name: env[name] for name in ("PATH", "HOME") if name in env}
    asked |= {name: os.environ[name] for name in _CALLERS if name in os.environ}
    try:
        done = subprocess.run(
            _ASK,
            cwd=cwd,
            env=asked,
            capture_output=True,
            stdin=subprocess.DEVNULL,
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.SubprocessError):
        return {}
    found = dict(entry.partition("\n")[::2] for entry in done.stdout.decode("utf-8", "replace").split("\0"))
    made = {}
    for role in ("author", "committer"):
        for part in ("name", "email"):
            value = found.get(f"{role}.{part}") or found.get(f"user.{part}")
            if value:
                made[f"GIT_{role.upper()}_{part.upper()}"] = value
    return {name: value for name, value in made.items() if name not in env}
