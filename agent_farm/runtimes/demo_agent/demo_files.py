"""The demo agent's work: writes a file in the working directory, and commits it."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Iterable
from pathlib import Path

_OURS = re.compile(r"Line \d+(?: about (.+))?")


class Refused(Exception):
    pass


def target_of(cwd: Path, name: str, *, anywhere: bool = False) -> Path:
    """Refused if `name` leads out of the working directory, unless `anywhere`."""
    root = cwd.resolve()
    target = (root / name).resolve()
    if not (anywhere or target.is_relative_to(root)) or target == root:
        raise Refused(f"{name} is outside the working directory")
    return target


def write_file(target: Path, content: str) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(content, encoding="utf-8")


def read_inside(cwd: Path, name: str) -> str:
    """Empty if there is no such file in the working directory."""
    try:
        return target_of(cwd, name).read_text(encoding="utf-8", errors="replace")
    except (Refused, OSError):
        return ""


def lines_of(target: Path, more: int, topic: str | None) -> list[str]:
    """The lines of the file, and `more` after them; without a topic, about that of the last line."""
    lines = target.read_text(encoding="utf-8").splitlines() if target.exists() else []
    before = _OURS.fullmatch(lines[-1]) if lines else None
    topic = topic or (before[1] if before else None)
    about = f" about {topic}" if topic else ""
    return [*lines, *(f"Line {number}{about}" for number in range(len(lines) + 1, len(lines) + more + 1))]


def lies_in(path: Path, places: Iterable[Path]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(place.resolve()) for place in places)


def commit_file(cwd: Path, target: Path, message: str) -> str | None:
    """The new commit; None if there is no repository, or nothing to commit."""
    if _git(cwd, "add", "--", str(target)).returncode:
        return None
    known = _git(cwd, "config", "user.email").stdout.strip()
    identity = () if known else ("-c", "user.name=Demo agent", "-c", "user.email=demo@localhost")
    if _git(cwd, *identity, "commit", "-q", "-m", message, "--", str(target)).returncode:
        return None
    return _git(cwd, "rev-parse", "--short", "HEAD").stdout.strip()


def _git(cwd: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        ["git", *arguments], cwd=cwd, capture_output=True, text=True, check=False, stdin=subprocess.DEVNULL
    )
