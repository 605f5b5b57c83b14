"""The command lines that start this room's programs; the only module that other rooms import."""

from __future__ import annotations

import sys
from pathlib import Path

_ROOM = Path(__file__).resolve().parent
# No site-packages, no PYTHON* variables of the user, and UTF-8 names in every locale.
_PYTHON = ("-I", "-S", "-X", "utf8")


def launcher_argv(session_name: str, run_directory: Path) -> tuple[str, ...]:
    """What tmux starts. The directory is in hex: its name may contain anything, tmux's words may not."""
    return (sys.executable, *_PYTHON, str(_ROOM / "launcher.py"), session_name, bytes(run_directory).hex())


def report_argv(
    run_directory: Path, run: str, event: str = "-", *, json_reply: bool = False
) -> tuple[str, ...]:
    """What a runtime's hook calls; with event `-`, the event's name is in the payload."""
    reply = ("--json-reply",) if json_reply else ()
    return (sys.executable, *_PYTHON, str(_ROOM / "report.py"), *reply, str(run_directory), run, event)


def await_tools_argv(run_directory: Path, run: str, seconds: float) -> tuple[str, ...]:
    """What a hook calls to hold a first prompt until the farm's tools are listed."""
    return (sys.executable, *_PYTHON, str(_ROOM / "await_tools.py"), str(run_directory), run, f"{seconds:g}")


def tell_argv(run_directory: Path) -> tuple[str, ...]:
    """What notifies a person through the targets of `notify.to`."""
    return (sys.executable, *_PYTHON, str(_ROOM / "tell.py"), str(run_directory))
