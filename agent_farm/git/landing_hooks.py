"""Runs the repository's own hooks for a landing, as git runs them for a merge that the user makes."""

from __future__ import annotations

import errno
import os
import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_farm.errors import AgentFarmError
from agent_farm.git.checkout import Checkout
from agent_farm.git.git_process import own_environment, paths_of, run_git

_LINES = 20  # how many of the last lines a hook printed are shown


class HookRefused(AgentFarmError):
    """A hook exited with a code other than 0; the evidence is what it printed."""

    code = "hook-refused"


class Hooks(Struct, frozen=True):
    """The hooks in `directory`; hooks in a place that builders write to are ignored.

    `signs` says whether the user's commits are signed.
    """

    checkout: Checkout
    directory: Path | None
    never_below: Path
    signs: bool = False

    def find(self, name: str) -> Path | None:
        """The hook, if it is executable: git skips those that are not."""
        if self.directory is None:
            return None
        file = self.directory / name
        if not (file.is_file() and os.access(file, os.X_OK)) or _is_below(file, self.never_below):
            return None
        return file

    def run(self, name: str, *args: str, cwd: Path | None = None) -> list[str]:
        """Its output; empty if there is no such hook."""
        file = self.find(name)
        if file is None:
            return []
        where = cwd or self.checkout.path
        env = {**own_environment(), "GIT_EDITOR": ":", "GIT_PREFIX": ""}
        done = _ended([os.fspath(file), *args], where, env)
        lines = [
            line.rstrip() for line in done.stdout.decode("utf-8", "replace").splitlines() if line.strip()
        ]
        if done.returncode:
            raise HookRefused(
                f"The hook {name} failed with exit code {done.returncode}",
                why=f"The hook is {file}.",
                evidence=lines[-_LINES:],
            )
        return lines


def find_hooks(checkout: Checkout, *, never_below: Path) -> Hooks:
    """The hooks in `core.hooksPath`, else in the git directory; `never_below` is where builders write.

    Whether the user's commits are signed is asked by the same git.
    """
    asked = ("config", "-z", "--get-regexp", r"^(core\.hookspath|commit\.gpgsign)$")
    given = (f"--git-dir={checkout.git_dir}", f"--work-tree={checkout.path}")
    items = paths_of(run_git(checkout.path, *given, *asked, ok=(0, 1)))
    named = (item.partition("\n") for item in items)  # a name without a value means true
    settings = {name: value if equals else "true" for name, equals, value in named}
    path = os.path.expanduser(settings.get("core.hookspath", ""))
    directory = checkout.path / path if path else checkout.common_dir / "hooks"
    usable = directory.is_dir() and not _is_below(directory, never_below)
    signs = settings.get("commit.gpgsign", "false").lower() not in ("false", "no", "off", "0", "")
    return Hooks(checkout, directory if usable else None, never_below, signs)


def _is_below(path: Path, place: Path) -> bool:
    return os.path.realpath(path).startswith(os.path.join(os.path.realpath(place), ""))


def _ended(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    try:
        return _run(argv, cwd, env)
    except OSError as error:
        if error.errno != errno.ENOEXEC:  # no #! line: the shell runs it
            raise AgentFarmError(f"The hook {argv[0]} cannot be run", why=error.strerror) from error
        return _run(["/bin/sh", *argv], cwd, env)


def _run(argv: Sequence[str], cwd: Path, env: Mapping[str, str]) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        argv,
        cwd=cwd,
        env=env,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
