"""Calls the `tmux` program: arguments in, answer out, in limited time and a clean environment."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

from msgspec import Struct

from agent_farm.errors import AgentFarmError, ToolMissing, UsageError

_SECONDS = 15.0
QUESTION_SECONDS = 6.0
# A server that does not answer is not asked again for a while: ten builders would otherwise wait ten times.
_SILENT_SECONDS = 10.0
_GOING_AWAY_SECONDS = 2.0

# What the design names for a runtime, what tmux needs to find its socket and configuration, and where the
# user's desktop, directories and tools are. A server that we start keeps these as its environment, also for
# the user's own sessions, and every pane can read them, so nothing that may hold a key is among them.
_KEPT = frozenset({
    "PATH", "HOME", "USER", "LOGNAME", "SHELL", "LANG", "TZ", "TERM", "COLORTERM", "TMUX", "TMPDIR",
    "TMUX_TMPDIR", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "DBUS_SESSION_BUS_ADDRESS",
    "EDITOR", "VISUAL", "PAGER", "LESS", "BROWSER", "LS_COLORS", "MANPATH", "INFOPATH", "NIX_PATH",
    "NVM_DIR", "NVM_BIN", "VOLTA_HOME", "PNPM_HOME", "BUN_INSTALL", "DENO_DIR", "PYENV_ROOT", "CONDA_PREFIX",
    "RBENV_ROOT", "GEM_HOME", "SDKMAN_DIR", "JAVA_HOME", "GOPATH", "GOROOT", "CARGO_HOME", "RUSTUP_HOME",
    "ANDROID_HOME", "HOMEBREW_PREFIX",
})  # fmt: skip
_KEPT_PREFIXES = ("LC_", "XDG_")


TIMED_OUT = 124
_silent_since: dict[str, float] = {}


class TmuxAnswer(Struct, frozen=True):
    code: int
    out: str
    err: str

    @property
    def gone(self) -> bool:
        """A definite no about what was asked for; any other failure says nothing about it."""
        return self.nothing_there or (self.code != 0 and self.err.startswith("can't find "))

    @property
    def nothing_there(self) -> bool:
        """A definite no: no socket, nothing listening on it, or a server without sessions."""
        return self.code != 0 and (
            self.err.startswith(("no server running on ", "no current target"))
            or (self.err.startswith("error connecting to ") and _is_absence(self.err))
        )

    @property
    def going_away(self) -> bool:
        """The server ended while it was being asked."""
        return self.code != 0 and self.err.startswith(("server exited", "lost server"))


def _is_absence(message: str) -> bool:
    return "(No such file or directory)" in message or "(Connection refused)" in message


def clean_environment(caller: Mapping[str, str]) -> dict[str, str]:
    """TMUX_PANE is left out, too, so that no command falls back to the pane where `af` was typed."""
    return {name: value for name, value in caller.items() if name in _KEPT or name.startswith(_KEPT_PREFIXES)}


def tmux_argv(socket: str | None, *arguments: str) -> tuple[str, ...]:
    if not socket:
        return ("tmux", *arguments)
    return ("tmux", "-S" if "/" in socket else "-L", socket, *arguments)


def socket_path(socket: str | None, environ: Mapping[str, str]) -> str:
    """The socket of the server that these words mean, found as tmux itself does."""
    if socket and "/" in socket:
        return os.path.abspath(socket)
    around = environ.get("TMUX", "").split(",")[0]
    if not socket and around:
        return around
    places = (environ.get("TMUX_TMPDIR"), "/tmp")
    base = next((place for place in places if place and os.path.isdir(place)), "/tmp")
    return os.path.join(os.path.realpath(base), f"tmux-{os.getuid()}", socket or "default")


def call_tmux(
    socket: str | None,
    commands: Sequence[Sequence[str]],
    *,
    stdin: bytes | None = None,
    cwd: Path | None = None,
    seconds: float = _SECONDS,
    patient: bool = False,
) -> TmuxAnswer:
    """Many commands in one process; tmux stops at the first that fails.

    With `patient`, for commands that may be repeated, a server that is just ending is waited for. Raises
    ToolMissing without tmux, UsageError if the working directory is gone. A server that does not answer in
    time gives an Answer with code 124, and so does every further call for a while.
    """
    silent = _silent_since.get(_server(socket))
    if silent is not None and time.monotonic() - silent < _SILENT_SECONDS:
        return TmuxAnswer(TIMED_OUT, "", "tmux does not answer")
    # without -u tmux turns everything beyond ASCII, our separator included, into underscores
    argv = tmux_argv(socket, "-u", *_chained(commands))
    answer = _called(argv, stdin, cwd, seconds)
    deadline = time.monotonic() + _GOING_AWAY_SECONDS
    while patient and answer.going_away and time.monotonic() < deadline:
        time.sleep(0.01)
        answer = _called(argv, stdin, cwd, seconds)
    if answer.code == TIMED_OUT and seconds >= QUESTION_SECONDS:
        _silent_since[_server(socket)] = time.monotonic()
    return answer


def ask_tmux(
    socket: str | None, commands: Sequence[Sequence[str]], *, seconds: float = QUESTION_SECONDS
) -> TmuxAnswer:
    """`call_tmux` for commands that change nothing."""
    return call_tmux(socket, commands, seconds=seconds, patient=True)


def _server(socket: str | None) -> str:
    return socket_path(socket, os.environ)


def _called(argv: Sequence[str], stdin: bytes | None, cwd: Path | None, seconds: float) -> TmuxAnswer:
    try:
        done = subprocess.run(
            [word.encode("utf-8", "surrogateescape") for word in argv],  # whatever the locale is
            input=stdin,
            stdin=subprocess.DEVNULL if stdin is None else None,
            capture_output=True,
            cwd=cwd,
            env=clean_environment(os.environ),
            timeout=seconds,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return TmuxAnswer(TIMED_OUT, "", f"tmux did not answer within {seconds:g} s")
    except FileNotFoundError as error:
        raise _absent(cwd) from error
    except OSError as error:
        raise AgentFarmError("tmux cannot be run", why=str(error)) from error
    return TmuxAnswer(done.returncode, _text(done.stdout), _text(done.stderr).strip())


def _chained(commands: Sequence[Sequence[str]]) -> list[str]:
    words: list[str] = []
    for command in commands:
        if words:
            words.append(";")
        for word in command:
            if word.endswith(";"):  # tmux would take it as the end of the command
                raise ValueError(f"a tmux argument ends in a semicolon: {word!r}")
            words.append(word)
    return words


def _absent(cwd: Path | None) -> AgentFarmError:
    if cwd is not None and not cwd.is_dir():
        return UsageError(f"{cwd} is not a directory")
    return ToolMissing("tmux is not installed", hint=install_command())


def install_command() -> str:
    return "brew install tmux" if sys.platform == "darwin" else "sudo apt-get install tmux"


def _text(data: bytes) -> str:
    return data.decode("utf-8", "surrogateescape")
