"""The demo agent's work: a file in the working directory, committed."""

from __future__ import annotations

import subprocess
from pathlib import Path


class Refused(Exception):
    pass


def write_file(cwd: Path, name: str, content: str, *, anywhere: bool = False) -> Path:
    """Write inside the working directory; Refused when `name` leads out of it and that is not allowed."""
    root = cwd.resolve()
    target = (root / name).resolve()
    if not (anywhere or target.is_relative_to(root)) or target == root:
        raise Refused(f"{name} is outside the working directory")
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")
    return target


def commit_file(cwd: Path, target: Path, message: str) -> str | None:
    """The new commit, or None where there is no repository or nothing to commit."""
    if _git(cwd, "add", "--", str(target)).returncode:
        return None
    done = _git(cwd, *_identity(cwd), "commit", "-q", "-m", message, "--", str(target))
    if done.returncode:
        return None
    return _git(cwd, "rev-parse", "--short", "HEAD").stdout.strip()


def _identity(cwd: Path) -> list[str]:
    """The user's identity where git knows one, else the demo agent's own."""
    if _git(cwd, "config", "user.email").stdout.strip():
        return []
    return ["-c", "user.name=Demo agent", "-c", "user.email=demo@localhost"]


def _git(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
