"""Everything in a builder's worktree that a removal and a restore have to give back."""

from __future__ import annotations

import hashlib
import os
from dataclasses import dataclass
from pathlib import Path

from tests.gitrepo import commit_files, git, make_repo, write_files


@dataclass(frozen=True, slots=True)
class Belongings:
    """Files by path (mode and hash), and what git says of them."""

    files: dict[str, tuple[str, str]]
    head: str
    branch: str
    status: str
    staged: str
    nested_head: str


def fill(worktree: Path) -> Belongings:
    """One of each kind of work: committed, staged, changed, untracked, ignored, in a nested repository."""
    commit_files(
        worktree,
        {".gitignore": "*.local\nnotes/\nbuild/\nreadonly/\n", "kept.txt": "committed\n"},
        "the builder's work",
    )
    write_files(worktree, {"staged.txt": "staged\n", "README.md": "changed\r\n", "new/deep.txt": "untracked"})
    git(worktree, "add", "staged.txt")
    write_files(worktree, {"secret.local": "ignored\n", "notes/a/b.md": "thoughts\n"})
    write_files(worktree, {"build/plan.md": "by hand\n", "pkg/build/deep/x.txt": "by hand, too\n"})
    write_files(worktree, {".agent-farm/thoughts.md": "where git does not look\n", "readonly/x": "x\n"})
    (worktree / "readonly").chmod(0o555)
    (worktree / "binary").write_bytes(bytes(range(256)))
    os.symlink("nowhere", worktree / "link")
    nested = make_repo(worktree / "vendor/lib", {"code.c": "int x;\n"})
    write_files(nested, {"unsaved.c": "int y;\n"})
    return read(worktree)


def read(worktree: Path) -> Belongings:
    return Belongings(
        files_of(worktree),
        git(worktree, "rev-parse", "HEAD"),
        git(worktree, "branch", "--show-current"),
        git(worktree, "status", "--porcelain", "--untracked-files=all"),
        git(worktree, "diff", "--cached"),
        git(worktree / "vendor/lib", "rev-parse", "HEAD"),
    )


def files_of(root: Path) -> dict[str, tuple[str, str]]:
    """Every file below `root` with its mode and the hash of its bytes; git's own directory left out."""
    found = {}
    for directory, folders, files in os.walk(root):
        folders[:] = [name for name in folders if name != ".git"]
        for name in files:
            path = Path(directory) / name
            if name == ".git":
                continue
            is_link = path.is_symlink()
            data = os.readlink(path).encode() if is_link else path.read_bytes()
            mode = "link" if is_link else oct(path.stat().st_mode & 0o777)
            found[str(path.relative_to(root))] = (mode, hashlib.sha256(data).hexdigest())
    return found
