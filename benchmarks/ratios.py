"""What each verb costs, as a multiple of `python -c 'import click'` in the same run, and of git and tmux.

Processor time of a command and of what it waits for is compared, since neighbours disturb that least; they
take turns. `BENCH_BUILDERS=10` asks for other numbers than 10 and 100; 500 are in `many`.
`tests/test_ratios.py` compares with what is recorded.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from itertools import chain
from pathlib import Path

from benchmarks import raw
from benchmarks.stage import AF, Command, Rows, Stage, builders, run_all, settle, spawn_idle, stage
from benchmarks.timer import Ratio, Timer, look
from tests.waiting import wait_until

COUNTS = tuple(map(int, os.environ.get("BENCH_BUILDERS", "10,100").split(",")))
_AT_REST = 2  # git processes of a status, about all builders together
ROUNDS = 8  # the last is looked at, and not timed
_COMPLETION = {"_AF_COMPLETE": "bash_complete", "COMP_WORDS": "af st", "COMP_CWORD": "1"}


def main() -> Rows:
    with stage() as on:
        yield from verbs(on).items()
    for count in COUNTS:
        with stage() as on:
            yield from of_many(on, count).items()


def verbs(on: Stage) -> dict[str, Ratio]:
    """Beside ten idle demo builders."""
    timer = Timer(on)
    ids = spawn_idle(on, 10)
    some = ids[:ROUNDS]

    def same(*words: str) -> list[Command]:
        return [(AF, *words)] * ROUNDS

    found = {
        "af --help": timer.each(same("--help")),
        "shell completion": timer.each(same(), env=_COMPLETION),
        "af path": timer.each(same("path", ids[0])),
        "af conflicts": timer.each(same("conflicts")),
        "af spawn": timer.each(same("spawn", "--shell", "--runtime", "demo"), _raw(on, raw.spawn)),
        "af send": timer.each([(AF, "send", id, "Hello") for id in some], _raw(on, raw.send)),
    }
    settle(on)
    for number, id in enumerate(some):
        _commit(on, on.repository / ".builders" / id, id)
        _commit(on, raw.tree(on, number), f"raw{number}")
    found["af diff"] = timer.each(same("diff", ids[0]), _raw(on, raw.diff))
    found["af merge"] = timer.each([(AF, "merge", id) for id in some], _raw(on, raw.merge))
    on.run(AF, "prune", "--stop")
    run_all(on, chain(*_raw(on, raw.prune)))
    found["af restore"] = timer.each([(AF, "restore", id) for id in some], _raw(on, raw.restore))
    for number in range(ROUNDS):
        on.run("tmux", "new-session", "-d", "-s", f"raw{number}", "--", "cat")
    found["af prune ID"] = timer.each([(AF, "prune", id) for id in some], _raw(on, raw.prune))
    return found


def _raw(on: Stage, way: Callable[[Stage, int], list[Command]]) -> list[list[Command]]:
    return [way(on, number) for number in range(ROUNDS)]


def _commit(on: Stage, tree: Path, name: str) -> None:
    (tree / f"{name}.txt").write_text("new\n")
    on.run("git", "-C", tree, "add", "-A")
    on.run("git", "-C", tree, "commit", "-q", "-m", "work")


def of_many(on: Stage, count: int) -> dict[str, Ratio]:
    """Idle demo builders are looked at, recovered, stopped and removed."""
    timer = Timer(on)
    spawn_idle(on, count)
    found = looked_at(on, timer)
    on.run("tmux", "kill-server")
    for name, words in (("recover", ("--yes",)), ("stop", ("--all",)), ("prune", ())):
        if name == "stop":
            settle(on)
        found[f"af {name}, {count} builders, each"] = timer.once((AF, name, *words), count)
    return found


def looked_at(on: Stage, timer: Timer) -> dict[str, Ratio]:
    """At rest: in the first seconds after a spawn git is asked about each worktree again."""
    count = len(builders(on))
    status = (AF, "status")
    wait_until(lambda: look(on, status).git <= _AT_REST, timeout=300, what="a status that asks git little")
    names = {"af status": status, "af status --fresh": (*status, "--fresh")}
    return {f"{name}, {count} builders": timer.each([way] * ROUNDS) for name, way in names.items()}
