"""What a person types without `af`: the same with git and tmux. Numbers are those of `raw` sessions."""

from __future__ import annotations

from pathlib import Path

from benchmarks.stage import Command, Stage


def tree(on: Stage, number: int) -> Path:
    return on.directory / "raw" / str(number)


def spawn(on: Stage, number: int, program: Command = ("cat",)) -> list[Command]:
    path, name = tree(on, number), f"raw{number}"
    return [
        ("git", "worktree", "add", "-q", "--no-track", "-B", name, path),
        ("tmux", "new-session", "-d", "-s", name, "-c", path, "--", *program),
    ]


def diff(on: Stage, number: int) -> list[Command]:
    return [("git", "-C", tree(on, number), "diff", "main...HEAD")]


def send(on: Stage, number: int) -> list[Command]:
    return [("tmux", "send-keys", "-t", f"=raw{number}:", "Hello", "Enter")]


def merge(on: Stage, number: int) -> list[Command]:
    return [("git", "merge", "-q", "--no-ff", "--no-edit", f"raw{number}")]


def prune(on: Stage, number: int) -> list[Command]:
    """Its work can be had back, as with `af`."""
    name = f"raw{number}"
    return [
        ("git", "update-ref", f"refs/kept/{name}", name),
        ("tmux", "kill-session", "-t", f"={name}"),
        ("git", "worktree", "remove", "--force", tree(on, number)),
        ("git", "branch", "-q", "-D", name),
    ]


def restore(on: Stage, number: int) -> list[Command]:
    name = f"raw{number}"
    return [("git", "worktree", "add", "-q", "--no-track", "-b", name, tree(on, number), f"refs/kept/{name}")]
