"""What a pane runs in tests: `programs.py WHAT FILE`. It says in FILE what it is and got, as JSON."""

from __future__ import annotations

import json
import os
import signal
import sys
import time
from pathlib import Path


def describe(file: Path, argv: list[str]) -> None:
    facts = {
        "argv": [os.fsencode(word).hex() for word in argv],
        "env": {os.fsencode(k).hex(): os.fsencode(v).hex() for k, v in os.environ.items()},
        "cwd": os.getcwd(),
        "pid": os.getpid(),
        "parent": os.getppid(),
        "group": os.getpgrp(),
        "foreground": os.tcgetpgrp(0),
        "ignored": [number for number in range(1, 32) if _is_ignored(number)],
        "descriptors": _open_descriptors(),
    }
    temporary = file.with_suffix(".part")
    temporary.write_text(json.dumps(facts))
    temporary.rename(file)


def _is_ignored(number: int) -> bool:
    # the interpreter itself ignores these two
    return number not in (signal.SIGPIPE, signal.SIGXFSZ) and signal.getsignal(number) == signal.SIG_IGN


def _open_descriptors() -> list[int]:
    found = []
    for number in range(3, 64):
        try:
            os.fstat(number)
        except OSError:
            continue
        found.append(number)
    return found


def stay(*, deaf: bool = False) -> None:
    if deaf:
        for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
            signal.signal(number, signal.SIG_IGN)
    while True:
        time.sleep(60)


def leave_child(*, deaf: bool) -> None:
    """A child of the same process group that outlives this program."""
    if os.fork() == 0:
        Path(sys.argv[2]).with_name("child").write_text(str(os.getpid()))
        stay(deaf=deaf)
    while not Path(sys.argv[2]).with_name("child").exists():
        time.sleep(0.01)


def leave_loner(*, deaf: bool) -> None:
    """A child in a session of its own, which knows nothing of where it comes from."""
    if os.fork() == 0:
        os.setsid()
        if deaf:
            signal.signal(signal.SIGTERM, signal.SIG_IGN)
        os.environ.clear()
        Path(sys.argv[2]).with_name("loner").write_text(str(os.getpid()))
        os.execv("/bin/sleep", ["sleep", "600"])
    while not Path(sys.argv[2]).with_name("loner").exists():
        time.sleep(0.01)


def say_goodbye(file: Path) -> None:
    time.sleep(0.3)
    file.with_name("goodbye").touch()
    sys.exit(0)


def spoil_terminal() -> None:
    import tty

    tty.setraw(0)
    os.write(1, b"\x1b[?1049h\x1b[?2004h\x1b[?1000h\x1b[?1006h\x1b[?25l\x1b[2;5r\x1b[31mspoiled")


def main() -> None:
    what, file = sys.argv[1], Path(sys.argv[2])
    describe(file, sys.argv)
    if what.isdigit():
        sys.exit(int(what))
    elif what == "stay":
        stay()
    elif what == "deaf":
        stay(deaf=True)
    elif what in ("child", "deaf-child"):
        leave_child(deaf=what == "deaf-child")
    elif what == "family":
        leave_child(deaf=True)
        stay(deaf=True)
    elif what in ("loner", "deaf-loner"):
        leave_loner(deaf=what == "deaf-loner")
    elif what == "tribe":
        leave_child(deaf=True)
        leave_loner(deaf=True)
        stay()
    elif what == "polite":
        signal.signal(signal.SIGTERM, lambda *_: say_goodbye(file))
        stay()
    elif what == "spoil":
        spoil_terminal()
    elif what.startswith("SIG"):
        os.kill(os.getpid(), getattr(signal, what))


if __name__ == "__main__":
    main()
