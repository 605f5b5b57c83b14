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
    git(root, "init", "-q", "-b", "main")
    commit_files(root, files or {"README.md": "# scratch\n"}, "first")
    return root
