"""Real git repositories for tests."""

from __future__ import annotations

import subprocess
from pathlib import Path


def git(cwd: Path, *args: str, check: bool = True, input: str | None = None) -> str:
    done = subprocess.run(
        ["git", *args], cwd=cwd, check=False, capture_output=True, text=True, input=input, timeout=300
    )
    if check and done.returncode:
        raise AssertionError(f"git {' '.join(args)} in {cwd}: {done.stderr}")
    return done.stdout.strip()


def write_files(root: Path, files: dict[str, str]) -> None:
    for name, content in files.items():
        target = root / name
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(content)


def commit_files(root: Path, files: dict[str, str], message: str = "change") -> str:
    write_files(root, files)
    git(root, "add", "--", *files)
    git(root, "commit", "-q", "-m", message)
    return git(root, "rev-parse", "HEAD")


def make_repo(root: Path, files: dict[str, str] | None = None) -> Path:
    """A repository on `main` with one commit."""
    root.mkdir(parents=True, exist_ok=True)
    is_empty = next(root.iterdir(), None) is None
    if files is None and _scratch:
        for name, content in _scratch.items():
            _lay(root / name, content)
        git(root, "update-index", "--refresh")
        return root
    git(root, "init", "-q", "-b", "main")
    commit_files(root, files or {"README.md": "# scratch\n"}, "first")
    if files is None and is_empty:
        places = [place for place in root.rglob("*") if place.suffix != ".sample"]
        _scratch.update({str(place.relative_to(root)): _content(place) for place in places})
    return root


# What git made of the first one without files of its own: four processes less for each of the others.
_scratch: dict[str, bytes | None] = {}


def _content(place: Path) -> bytes | None:
    return None if place.is_dir() else place.read_bytes()


def _lay(place: Path, content: bytes | None) -> None:
    if content is None:
        place.mkdir()
    else:
        place.write_bytes(content)
