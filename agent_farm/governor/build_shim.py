"""Stands in for a build command on a builder's PATH: waits for a slot, then runs the real command.

Run as a file: `python -I -S build_shim.py CONFIG NAME ARG…`. CONFIG is a directory with `governor.json`
and, below `bin/`, these stand-ins. NAME is `--` for a program given by path, which always needs a slot.
"""

from __future__ import annotations

import json
import os
import shutil
import signal
import sys
from collections.abc import Sequence
from pathlib import Path
from types import FrameType
from typing import NamedTuple, NoReturn

if __name__ == "__main__":  # run as a file: only the standard library is on the path so far
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from agent_farm.descendants import lifeline
from agent_farm.governor.as_build import (
    HELD,
    become_build,
    let_other_sessions_first,
    replace_process,
)
from agent_farm.governor.slots import Held, Limits, NoSlots, slot

FILE = "governor.json"
BIN = "bin"


class Config(NamedTuple):
    run: str
    limits: Limits
    commands: tuple[str, ...]


def main(argv: Sequence[str]) -> None:
    place, name, *rest = argv
    config = _load(Path(place))
    env = {**os.environ, "PATH": _without(os.environ.get("PATH", os.defpath), Path(place) / BIN)}
    words = rest if name == "--" else [name, *rest]
    program = shutil.which(words[0], path=env["PATH"])
    if program is None:
        _say(f"{words[0]}: not found")
        sys.exit(127)
    if config is None or env.get(HELD) or not (name == "--" or is_build(words, config.commands)):
        replace_process(program, words, env)
    try:
        with slot(
            config.limits, config.run, waits=lambda: _say(f"{name} waits for its turn to build")
        ) as held:
            code = _run(program, words, env, held, in_session_of=config.run)
    except NoSlots:  # its sandbox blocks access to the slots
        replace_process(program, words, env)
    except KeyboardInterrupt:
        code = 128 + signal.SIGINT
    sys.exit(code)


def is_build(words: Sequence[str], commands: Sequence[str]) -> bool:
    """`npm test` matches `npm test …` but not `npm start`; options before the word are ignored."""
    given = [words[0], *(word for word in words[1:] if not word.startswith(("-", "+")))]
    return any(given[: len(wanted)] == wanted for wanted in (command.split() for command in commands))


def _load(place: Path) -> Config | None:
    try:
        raw = json.loads((place / FILE).read_bytes())
        numbers = (int(raw[name]) for name in ("slots", "memory", "jobs"))
        return Config(str(raw["run"]), Limits(Path(raw["directory"]), *numbers), tuple(raw["commands"]))
    except (OSError, ValueError, KeyError, TypeError):  # it was removed together with its builder
        return None


def _without(path: str, directory: Path) -> str:
    """`path` without `directory`, so that the real programs are found; relative entries stay as they are."""
    own = os.path.realpath(directory)
    return os.pathsep.join(one for one in path.split(os.pathsep) if os.path.realpath(one) != own)


def _run(program: str, words: list[str], env: dict[str, str], held: Held, *, in_session_of: str) -> int:
    """Runs it in a child: this process holds the slot while it lives, a daemon left by the build does not."""
    parent = os.getpid()
    child = os.fork()
    if child == 0:
        _become(program, words, env, held, parent)

    def pass_on(number: int, frame: FrameType | None) -> None:
        os.kill(child, number)

    for number in (signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, pass_on)
    for number in (signal.SIGINT, signal.SIGQUIT):  # the terminal sends them to the child as well
        signal.signal(number, signal.SIG_IGN)
    if os.environ.get("AF_RUN") == in_session_of:  # a builder's pane, not the user's own terminal
        let_other_sessions_first()
    while True:
        _, status = os.waitpid(child, os.WUNTRACED)
        if not os.WIFSTOPPED(status):
            break
        os.kill(parent, signal.SIGSTOP)
        os.kill(child, signal.SIGCONT)
    return os.WEXITSTATUS(status) if os.WIFEXITED(status) else 128 + os.WTERMSIG(status)


def _become(program: str, words: list[str], env: dict[str, str], held: Held, parent: int) -> NoReturn:
    try:
        lifeline(signal.SIGTERM)()
        if os.getppid() != parent:
            os._exit(128 + signal.SIGTERM)
        become_build(program, words, env, held)
    except OSError as error:
        _say(f"{words[0]}: {error.strerror}")
    os._exit(126)


def _say(text: str) -> None:
    sys.stderr.write(f"[agent-farm] {text}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    main(sys.argv[1:])
