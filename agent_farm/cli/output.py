"""The only file that prints. stdout is the answer, stderr the narration."""

from __future__ import annotations

import json
import os
import shlex
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any, TextIO

from agent_farm.errors import AgentFarmError
from agent_farm.printable import printable as printable

_CODES = {"bold": "1", "dim": "2", "red": "31", "green": "32", "yellow": "33", "blue": "34", "cyan": "36"}
STATE_STYLES = {
    "waiting": "yellow",
    "interrupted": "yellow",
    "limited": "cyan",
    "working": "green",
    "preparing": "cyan",
    "creating": "cyan",
    "queued": "dim",
    "idle": "blue",
    "failed": "red",
    "lost": "red",
    "unknown": "red",
}


def answer(text: str, end: str = "\n") -> None:
    """Prints what was asked for."""
    _write(sys.stdout, text + end)


def answer_bytes(data: bytes) -> None:
    sys.stdout.flush()
    sys.stdout.buffer.write(data)
    sys.stdout.buffer.flush()


def answer_json(document: Mapping[str, Any]) -> None:
    """Prints one versioned object to stdout."""
    _write(sys.stdout, json.dumps({"version": 1, **document}, default=str) + "\n")


def page(text: str) -> None:
    """Shows `text` in the user's pager on a terminal, as git does; `less` leaves a short text on the screen.

    Elsewhere prints it byte for byte, so that a patch can be applied whatever the files' encoding.
    """
    data = text.encode(errors="surrogateescape") + b"\n"
    if not (sys.stdout.isatty() and _shown_in_pager(data)):
        answer_bytes(data)


def _shown_in_pager(data: bytes) -> bool:
    import subprocess  # takes 2 ms, which `--help` and `--version` need not spend

    pager = shlex.split(os.environ.get("GIT_PAGER") or os.environ.get("PAGER") or "less")
    # Ctrl-C is for the pager: if we ended it, it would leave the terminal without echo.
    before = signal.signal(signal.SIGINT, lambda *_: None)
    try:
        subprocess.run(pager, input=data, env={"LESS": "FRX", **os.environ}, check=False)
        return True
    except OSError:
        return False
    finally:
        signal.signal(signal.SIGINT, before)


def narrate(text: str) -> None:
    """Prints progress to stderr; scripts that read stdout do not see it."""
    _write(sys.stderr, text + "\n")


def narrate_hint(command: str) -> None:
    narrate(f"hint: {command}")


def style(text: str, name: str | None, stream: TextIO | None = None) -> str:
    """`text` in colour on a terminal, plain elsewhere and with NO_COLOR."""
    if name is None or not has_colour(stream):
        return text
    return f"\x1b[{_CODES[name]}m{text}\x1b[0m"


def show_error(error: AgentFarmError, *, as_json: bool) -> None:
    if as_json:
        answer_json({"error": error.document})
        return
    what = folded(f"error: {_set_in(error.what)}", stream=sys.stderr)
    narrate(style("error:", "red", sys.stderr) + what.removeprefix("error:"))
    if error.why:
        narrate(folded(f"  {_set_in(error.why)}", stream=sys.stderr))
    for line in error.evidence:
        narrate(f"  {_set_in(line)}")
    if error.hint:
        narrate_hint(_set_in(error.hint))


def _set_in(text: str) -> str:
    """Indents what others wrote, so that none of its lines can pass for one of ours, such as `hint:`."""
    return printable(text).replace("\n", "\n  ")


def folded(text: str, *, indent: str = "  ", stream: TextIO | None = None) -> str:
    """Prose wrapped for a terminal; elsewhere unchanged, like commands to copy."""
    stream = stream or sys.stdout
    width = terminal_width(stream)
    if not stream.isatty() or max(map(len, text.split("\n"))) <= width:
        return text
    import textwrap  # takes 2 ms, which most answers need not spend

    fold = textwrap.TextWrapper(
        width, subsequent_indent=indent, break_long_words=False, break_on_hyphens=False
    )
    return "\n".join(part for line in text.split("\n") for part in fold.wrap(line) or [""])


def show_bug(error: Exception, *, as_json: bool) -> None:
    """Writes the traceback to a log, never to the terminal."""
    log = _write_bug_log(error)
    where = f"The details are in {log}." if log else "The details could not be written."
    what = f"This is a bug in af: {type(error).__name__}: {error}"
    show_error(AgentFarmError(what, why=where, hint="af doctor"), as_json=as_json)


def terminal_width(stream: TextIO | None = None) -> int:
    if columns := os.environ.get("COLUMNS", ""):
        return max(40, int(columns)) if columns.isdecimal() else 100
    try:
        return max(40, os.get_terminal_size((stream or sys.stdout).fileno()).columns)
    except (OSError, ValueError):
        return 100


def terminal_height() -> int:
    try:
        return max(4, os.get_terminal_size(sys.stdout.fileno()).lines)
    except (OSError, ValueError):
        return 24


def is_interactive() -> bool:
    return sys.stdin.isatty() and sys.stderr.isatty()


def require_terminal(*, why: str = "Attaching needs one.", hint: str | None = None) -> None:
    if not (sys.stdin.isatty() and sys.stdout.isatty()):
        raise AgentFarmError("Not a terminal", why=why, hint=hint)


def has_colour(stream: TextIO | None = None) -> bool:
    stream = stream or sys.stdout
    return not os.environ.get("NO_COLOR") and os.environ.get("TERM") != "dumb" and stream.isatty()


def _write(stream: TextIO, text: str) -> None:
    try:
        stream.write(text)
    except UnicodeEncodeError:  # a terminal whose encoding is not UTF-8
        encoding = stream.encoding or "ascii"
        stream.write(text.encode(encoding, "backslashreplace").decode(encoding))
    stream.flush()


def _write_bug_log(error: Exception) -> str | None:
    import traceback

    from agent_farm.disk import make_directory, replace_file
    from agent_farm.paths import user_state_directory

    path = user_state_directory() / "logs" / f"bug-{time.strftime('%Y%m%d-%H%M%S')}-{os.getpid()}.log"
    try:
        make_directory(path.parent)
        replace_file(path, "".join(traceback.format_exception(error)))
    except AgentFarmError:
        return None
    return str(path)
