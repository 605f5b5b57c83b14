"""Which of `gh` and `glab` serves this repository, and how it is run: without a shell, with a time limit."""

from __future__ import annotations

import json
import os
import re
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from agent_farm.errors import AgentFarmError, TimedOut, ToolMissing
from agent_farm.launch import as_command

SECONDS = 60.0
_MOST_BYTES = 32 * 1024 * 1024
_HOST = re.compile(r"(?:[a-z+]+://)?(?:[^@/]+@)?([^/:]+)", re.IGNORECASE)
_NAMES = {"gh": "GitHub", "glab": "GitLab"}
_QUIET = {
    "GH_PROMPT_DISABLED": "1",
    "GH_NO_UPDATE_NOTIFIER": "1",
    "GH_PAGER": "",
    "GLAB_CHECK_UPDATE": "false",
    "NO_PROMPT": "true",
    "NO_COLOR": "1",
    "CLICOLOR_FORCE": "0",
    "PAGER": "cat",
}


class ForgeError(AgentFarmError):
    """`gh`, `glab` or `bd` failed; `why` has its own words."""

    code = "forge"


@dataclass(frozen=True, slots=True)
class ForgeCli:
    """`name` is gh, glab or bd; it finds the repository on the forge by the remotes of `root`."""

    name: str
    program: str
    root: Path

    def ask(self, *args: str, what: str) -> object:
        """What it prints, parsed as JSON; otherwise ForgeError, which says that it could not do `what`."""
        output = self.run(*args, what=what)
        try:
            return json.loads(output)
        except (ValueError, RecursionError) as error:
            raise ForgeError(
                f"{self.name} could not {what}", why=f"Its output is not JSON: {error}"
            ) from None

    def run(self, *args: str, what: str) -> str:
        argv = (self.program, *args)
        try:
            done = _ended(argv, self.root)
        except subprocess.TimeoutExpired:
            raise TimedOut(
                f"{self.name} could not {what}", why=f"It did not answer within {SECONDS:g} s."
            ) from None
        except OSError as error:
            raise ToolMissing(f"{self.program} cannot be started", why=error.strerror) from None
        if done.returncode:
            said = " ".join((done.stderr or done.stdout).decode("utf-8", "replace").split())[:400]
            again = as_command("cd", self.root) + " && " + as_command(self.name, *args)
            raise ForgeError(f"{self.name} could not {what}", why=said or None, hint=again)
        if len(done.stdout) > _MOST_BYTES:
            raise ForgeError(f"{self.name} could not {what}", why=f"It printed {len(done.stdout)} bytes.")
        return done.stdout.decode("utf-8", "replace")


def _ended(argv: Sequence[str], cwd: Path) -> subprocess.CompletedProcess[bytes]:
    """The process after it has ended, or has been ended with its children on time-out or Ctrl-C."""
    with subprocess.Popen(
        argv,
        cwd=cwd,
        env=_environment(os.environ),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        process_group=0,
    ) as process:
        try:
            output, said = process.communicate(timeout=SECONDS)
        except BaseException:
            with suppress(ProcessLookupError, PermissionError):
                os.killpg(process.pid, signal.SIGKILL)
            raise
    return subprocess.CompletedProcess(argv, process.returncode, output, said)


def choose_forge(root: Path, remote_url: str | None, *, setting: str | None) -> ForgeCli:
    """The program of the setting, else the one for the remote's host, else the only one installed."""
    host = host_of(remote_url)
    wanted = setting or next((name for name, word in _NAMES.items() if word.lower() in (host or "")), None)
    installed = {name: path for name in _NAMES if (path := shutil.which(name))}
    if wanted is None and len(installed) == 1:
        wanted = next(iter(installed))
    if wanted in installed:
        return ForgeCli(wanted, installed[wanted], root)
    where = f" for {host}" if host else ""
    if wanted is None and installed:
        raise ToolMissing(
            f"Both gh and glab are installed, and it is unknown which one to use{where}",
            hint="af config set forge.command glab",
        )
    raise ToolMissing(
        f"{wanted or 'gh or glab'} is not installed",
        why=f"Issues and pull requests{where} go through it: https://cli.github.com for gh,"
        " https://gitlab.com/gitlab-org/cli for glab.",
    )


def host_of(url: str | None) -> str | None:
    """Reads `git@github.com:owner/name.git` and `https://github.com/owner/name`; None for a directory."""
    if not url or url.startswith(("/", ".", "file:")):
        return None
    found = _HOST.match(url)
    return found[1].lower() if found else None


def _environment(environ: Mapping[str, str]) -> dict[str, str]:
    """The user's own, with its logins, but without what would make git answer for another repository."""
    kept = {name: value for name, value in environ.items() if not name.startswith("GIT_")}
    return kept | _QUIET


def words_of(value: object, *path: str) -> str:
    """The text at that path of a JSON document, "" if there is none."""
    for name in path:
        value = value.get(name) if isinstance(value, Mapping) else None
    return value if isinstance(value, str) else ""


def rows_of(value: object, name: str) -> Sequence[object]:
    rows = value.get(name) if isinstance(value, Mapping) else None
    return rows if isinstance(rows, list) else ()
