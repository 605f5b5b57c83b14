"""Runs git: a clean environment goes in; text, or an error with the meaning of git's message, comes out."""

from __future__ import annotations

import errno
import math
import os
import signal
import subprocess
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from pathlib import Path
from typing import BinaryIO, NoReturn, TypedDict, Unpack

from agent_farm.errors import AgentFarmError, TimedOut, ToolMissing

Argument = str | os.PathLike[str]

_KEPT = frozenset(
    {
        "GIT_AUTHOR_NAME",
        "GIT_AUTHOR_EMAIL",
        "GIT_AUTHOR_DATE",
        "GIT_COMMITTER_NAME",
        "GIT_COMMITTER_EMAIL",
        "GIT_COMMITTER_DATE",
        "GIT_SSH",
        "GIT_SSH_COMMAND",
        "GIT_SSH_VARIANT",
        "GIT_CONFIG_GLOBAL",
        "GIT_CONFIG_SYSTEM",
        "GIT_CONFIG_NOSYSTEM",
    }
)
# Includes what a filter such as git-lfs needs. Variables that begin with LC_, and those of _KEPT, are kept
# too.
_SMALL = frozenset(
    {"PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TMPDIR", "XDG_CONFIG_HOME", "XDG_CACHE_HOME"}
)


_ENDING_SECONDS = 0.5
_WATCHED_AFTER_SECONDS, _WATCHED_EVERY_SECONDS = 1.0, 0.1
_MOST_FACTS = 5  # in an error: on a full disk git prints one for each file
_deadline: ContextVar[float] = ContextVar("deadline", default=math.inf)


class GitError(AgentFarmError):
    """git failed; `status` and `stderr` are what it said."""

    code = "git"

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        hint: str | None = None,
        status: int = 128,
        stderr: str = "",
    ) -> None:
        super().__init__(what, why=why, hint=hint)
        self.status = status
        self.stderr = stderr


class Options(TypedDict, total=False):
    """How a git process is run; the same for every function that runs one.

    `env` is added to `base`, by default the caller's own environment (`git_environment`).
    `output` receives stdout, which is then not returned; this way a large output is never held in memory.
    `meanwhile` is called while git runs; if it raises, git is ended. `watch` gets all that git has said on
    stderr, again and again, once it has run for a second.
    `apart` gives git a session of its own, so that it gets no Ctrl-C and has no terminal to ask on.
    """

    input: str | bytes | BinaryIO | None
    output: BinaryIO | None
    env: Mapping[str, str] | None
    base: Mapping[str, str] | None
    pass_fds: Sequence[int]
    timeout: float | None
    apart: bool
    meanwhile: Callable[[], object] | None
    watch: Callable[[bytes], object] | None


def own_environment() -> dict[str, str]:
    """This process's environment, without variables that make git answer for another repository."""
    return {name: value for name, value in os.environ.items() if not name.startswith("GIT_") or name in _KEPT}


def git_environment() -> dict[str, str]:
    """`own_environment` for a git that runs unattended and whose output is parsed."""
    kept = own_environment()
    # With optional locks, git would refresh the index in passing, and make a builder's own git fail
    # meanwhile.
    return kept | {"LC_ALL": "C", "GIT_TERMINAL_PROMPT": "0", "GIT_OPTIONAL_LOCKS": "0"}


def small_environment() -> dict[str, str]:
    """The variables git needs, and no key, token or agent socket: others may influence what this git runs."""
    whole = git_environment()
    names = [name for name in whole if name in _SMALL or name.startswith(("GIT_", "LC_"))]
    return {name: whole[name] for name in names if not name.startswith("GIT_SSH")}


@contextmanager
def git_deadline(seconds: float) -> Iterator[None]:
    """Every git run inside ends by `seconds` from now, all of them together; else TimedOut is raised.

    This includes threads that get a copy of the context.
    """
    token = _deadline.set(min(_deadline.get(), time.monotonic() + seconds))
    try:
        yield
    finally:
        _deadline.reset(token)


def run_git(cwd: Path, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> str:
    """stdout as text; bytes that are not UTF-8 become surrogates, as Python does with paths."""
    return run_git_bytes(cwd, *args, ok=ok, **options).decode("utf-8", "surrogateescape")


def with_warnings(args: Sequence[Argument], answer: tuple[int, bytes, bytes]) -> tuple[str, tuple[str, ...]]:
    """stdout as text, and the warnings of a git that succeeded (about what it could not read, say)."""
    status, output, stderr = answer
    if status:
        raise_git_error(args, status, stderr)
    marked = (line.partition(": ") for line in stderr.decode("utf-8", "replace").strip().splitlines())
    warnings = tuple(text for kind, _, text in marked if kind in ("warning", "error"))
    return output.decode("utf-8", "surrogateescape"), warnings


def run_git_bytes(cwd: Path, *args: Argument, ok: Sequence[int] = (0,), **options: Unpack[Options]) -> bytes:
    """stdout; GitError unless the exit status is in `ok`; TimedOut, and git ended, after `timeout` s."""
    status, output, stderr = ask_git(cwd, *args, **options)
    if status not in ok:
        raise_git_error(args, status, stderr)
    return output


def ask_git(cwd: Path, *args: Argument, **options: Unpack[Options]) -> tuple[int, bytes, bytes]:
    """Exit status, stdout and stderr, for callers that expect failures."""
    given, base, timeout = options.get("input"), options.get("base"), time_left(options.get("timeout"))
    input = given.encode("utf-8", "surrogateescape") if isinstance(given, str) else given
    if timeout is not None and timeout <= 0:
        raise TimedOut(f"There was no time left for git {args[command_at(args)]} in {cwd}")
    try:
        process = subprocess.Popen(
            ["git", *(os.fspath(arg) for arg in args)],
            cwd=cwd,
            env={**(git_environment() if base is None else base), **(options.get("env") or {})},
            stdin=_stream_of(input),
            stdout=options.get("output") or subprocess.PIPE,
            stderr=subprocess.PIPE,
            pass_fds=tuple(options.get("pass_fds", ())),
            # A call with a timeout is ended with all its children; one without shares the terminal's Ctrl-C,
            # on which git removes its own lock files.
            process_group=None if timeout is None or options.get("apart") else 0,
            start_new_session=options.get("apart", False),
        )
    except OSError as error:
        _raise_cannot_start(cwd, error)
    with process:
        if meanwhile := options.get("meanwhile"):
            _meanwhile(process, meanwhile)
        try:
            given = input if isinstance(input, bytes) else None
            output, stderr = _answer(process, given, timeout, options.get("watch"))
        except subprocess.TimeoutExpired:
            _end_group(process)
            raise TimedOut(f"git {args[command_at(args)]} took longer than {timeout:g} s in {cwd}") from None
        except BaseException:
            process.kill()
            raise
    return process.returncode, output or b"", stderr


def _stream_of(input: bytes | BinaryIO | None) -> int | BinaryIO:
    if input is None:
        return subprocess.DEVNULL
    return subprocess.PIPE if isinstance(input, bytes) else input


def time_left(timeout: float | None) -> float | None:
    """Seconds until `timeout` or `git_deadline`, whichever comes first; None if there is neither."""
    left = _deadline.get() - time.monotonic()
    if left == math.inf:
        return timeout
    return left if timeout is None else min(left, timeout)


def paths_of(output: str) -> list[str]:
    """The items of a NUL-terminated list."""
    return output.split("\0")[:-1] if output else []


def _meanwhile(process: subprocess.Popen[bytes], act: Callable[[], object]) -> None:
    try:
        act()
    except BaseException:
        process.terminate()  # git removes its own lock files then
        try:
            with suppress(subprocess.TimeoutExpired):
                process.wait(_ENDING_SECONDS)
        finally:
            process.kill()  # after a second Ctrl-C, too
        raise


def _answer(
    process: subprocess.Popen[bytes],
    input: bytes | None,
    timeout: float | None,
    watch: Callable[[bytes], object] | None,
) -> tuple[bytes, bytes]:
    """stdout and stderr, once it has ended; TimeoutExpired if that takes too long."""
    if watch is None:
        return process.communicate(input, timeout)
    end, pause = math.inf if timeout is None else time.monotonic() + timeout, _WATCHED_AFTER_SECONDS
    while (left := end - time.monotonic()) > pause:
        try:
            return process.communicate(input, pause)
        except subprocess.TimeoutExpired as error:
            watch(error.stderr or b"")
            input, pause = None, _WATCHED_EVERY_SECONDS
    return process.communicate(input, left)


def _end_group(process: subprocess.Popen[bytes]) -> None:
    with suppress(ProcessLookupError, PermissionError):
        os.killpg(process.pid, signal.SIGKILL)


def _raise_cannot_start(cwd: Path, error: OSError) -> NoReturn:
    if not cwd.is_dir():
        raise GitError(f"The directory {cwd} does not exist", hint="cd to a directory that does") from error
    if isinstance(error, FileNotFoundError):
        raise ToolMissing("git is not installed", hint="sudo apt-get install git") from error
    if isinstance(error, PermissionError) and not os.access(cwd, os.X_OK):
        raise GitError(f"The directory {cwd} cannot be entered", why=error.strerror) from error
    full = error.errno in (errno.EMFILE, errno.ENFILE)
    hint = "ulimit -n 4096" if full else "sudo apt-get install git"
    raise ToolMissing("git cannot be run", why=error.strerror, hint=hint) from error


def raise_git_error(args: Sequence[Argument], status: int, output: bytes) -> NoReturn:
    name, words = args[command_at(args)], output.decode("utf-8", "replace").strip()
    if status < 0:
        what = f"git {name} was ended by {signal.Signals(-status).name}"
        raise GitError(what, status=status, stderr=words)
    raise GitError(f"git {name} failed", why=_meaning(words), hint=_hint(words), status=status, stderr=words)


def command_at(args: Sequence[Argument]) -> int:
    """The index of the subcommand's name in `args`, after git's own options."""
    at = 0
    while str(args[at]).startswith("-"):
        at += 2 if args[at] == "-c" else 1
    return at


def _meaning(stderr: str) -> str | None:
    """The lines that say what went wrong, without git's prefixes and advice."""
    lines = [line.strip() for line in stderr.splitlines() if line.strip()]
    facts = [line for line in lines if not line.startswith("hint:")]
    fatal = [line for line in facts if line.startswith(("fatal:", "error:"))] or facts
    left = [f"… {len(fatal) - _MOST_FACTS} more lines"] if len(fatal) > _MOST_FACTS else []
    shown = (line.removeprefix("fatal:").removeprefix("error:").strip() for line in fatal[:_MOST_FACTS])
    return "\n".join([*shown, *left]) or None


def _hint(stderr: str) -> str | None:
    if "dubious ownership" in stderr:
        command = next((line for line in stderr.splitlines() if "safe.directory" in line), "")
        return command.strip() or "git config --global --add safe.directory <directory>"
    if "Please tell me who you are" in stderr or "unable to auto-detect email" in stderr:
        return 'git config --global user.name "…" && git config --global user.email …'
    if "failed to sign" in stderr or "gpg failed" in stderr:
        return "git config --show-origin --get-regexp '^(gpg|commit\\.gpg|user\\.signing)'"
    if ".lock': File exists" in stderr:
        return "af doctor"
    if "No space left on device" in stderr or "unable to write file" in stderr:
        return "df -h ."
    return None
