"""Becomes a build: comes after agents and the user's programs, and goes first when memory runs out.

Run as a file, in a session of its own, by whoever holds the slot, for it waits no more:
`python -I -S as_build.py SLOT JOBS GROUP PROGRAM ARG…`. GROUP is "" if it has no cgroup.
"""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NoReturn

if __name__ == "__main__":  # run as a file: only the standard library is on the path so far
    sys.path.append(str(Path(__file__).resolve().parents[2]))

from agent_farm.governor import cgroup
from agent_farm.governor.jobserver import shared_jobs
from agent_farm.governor.slots import Held, note_process

HELD = "AGENT_FARM_BUILD_SLOT"  # in the environment of every process that runs in a slot

_NICER = 10
_AUTOGROUP = "/proc/self/autogroup"
_TRIES, _PAUSE = 10, 0.1
_FIRST_TO_GO = "500"  # of 1000: when memory runs out, the kernel ends a build rather than an agent


def main(argv: Sequence[str]) -> NoReturn:
    slot, jobs, group, *words = argv
    let_other_sessions_first()
    held = Held(Path(slot), int(jobs), Path(group) if group else None)
    become_build(words[0], words, os.environ, held)


def become_build(program: str, words: list[str], env: Mapping[str, str], held: Held) -> NoReturn:
    os.nice(_NICER)
    _be_first_to_go()
    if held.group is not None:
        cgroup.enter(held.group)
    note_process(held.path, os.getpid())
    replace_process(program, words, {**env, **shared_jobs(held.path.parent, held.jobs), HELD: "1"})


def replace_process(program: str, words: list[str], env: Mapping[str, str]) -> NoReturn:
    for number in (signal.SIGPIPE, signal.SIGXFSZ):  # Python ignores them, and the program would, too
        signal.signal(number, signal.SIG_DFL)
    os.execve(program, words, env)


def let_other_sessions_first() -> None:
    """Where Linux shares processors by session (autogroup), a nice value only counts within its session."""
    for _ in range(_TRIES):
        try:
            with open(_AUTOGROUP, "r+") as file:
                if int(file.read().split()[-1]) < _NICER:
                    file.seek(0)
                    file.write(str(_NICER))
            return
        except BlockingIOError:  # the kernel accepts ten such requests a second, from all users together
            time.sleep(_PAUSE)
        except (OSError, ValueError, IndexError):  # not Linux, or one without autogroup
            return


def _be_first_to_go() -> None:
    try:
        with open("/proc/self/oom_score_adj", "w") as file:
            file.write(_FIRST_TO_GO)
    except OSError:  # not Linux
        pass


if __name__ == "__main__":
    main(sys.argv[1:])
