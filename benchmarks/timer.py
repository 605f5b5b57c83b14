"""Processor time of commands, in turns with the yardstick and with git and tmux for the same."""

from __future__ import annotations

import resource
import shutil
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import partial
from statistics import median

from benchmarks.stage import IMPORT_CLICK, Command, Spread, Stage, ratio, run_all, seconds, spread

# A process of its own, since what a process took before it became another program is counted as that one's.
_PEAK = (sys.executable, "-I", "-S", "-c", """
import os, sys
child = os.posix_spawnp(sys.argv[1], sys.argv[1:], os.environ)
_, status, usage = os.wait4(child, 0)
print(f"\\n{usage.ru_maxrss * 1024 / 1e6:.1f}")
sys.exit(os.waitstatus_to_exitcode(status))
""")  # fmt: skip
_COUNTING = '#!/bin/sh\necho >> "{log}"\nexec {real} "$@"\n'


@dataclass(frozen=True)
class Look:
    """Memory (RSS, in MB) of the largest process, and how many processes there were of git and of tmux."""

    peak: float
    git: float
    tmux: float


@dataclass(frozen=True)
class Ratio(Spread):
    """Quartiles, as multiples of the yardstick; `seconds` are by the clock.

    `least` and `least_clock` are the least of processor time and of elapsed time, as multiples of the
    yardstick's least: noise only adds to both. `raw` compares with git and tmux for the same.
    """

    least: float
    least_clock: float
    seconds: float
    look: Look
    raw: Spread | None = None

    def __str__(self) -> str:
        raw = f"; {self.raw} of raw" if self.raw else ""
        used = f"{self.look.peak:.0f} MB, {self.look.git:g} git, {self.look.tmux:g} tmux"
        return f"{super().__str__()}; {self.seconds:.3f} s, {used}{raw}"


class Timer:
    def __init__(self, on: Stage) -> None:
        self._on = on
        for _ in range(3):  # caches are warm from here on
            on.run(*IMPORT_CLICK)

    def each(
        self,
        commands: Sequence[Command],
        raw: Sequence[Sequence[Command]] = (),
        env: Mapping[str, str] | None = None,
    ) -> Ratio:
        """All are timed, each in turn with what is typed without `af`, but the last, which is looked at."""
        on = Stage(self._on.directory, {**self._on.env, **(env or {})})
        turns, bare = [], []
        for number, command in enumerate(commands[:-1]):
            turns.append(self._turn(partial(on.run, *command)))
            if raw:
                bare.append(processor_seconds(partial(run_all, on, raw[number])))
        looked = look(on, commands[-1])
        run_all(on, raw[-1] if raw else ())
        spent, clock, units, unit_clocks = zip(*turns, strict=True)
        return Ratio(
            **vars(spread([one / median(units) for one in spent])),
            least=round(min(spent) / min(units), 3),
            least_clock=round(min(clock) / min(unit_clocks), 3),
            seconds=round(median(clock), 3),
            look=looked,
            raw=ratio(spent, bare) if raw else None,
        )

    def once(self, command: Command, parts: int) -> Ratio:
        """A command that does something to many, looked at while it is timed; for each of them."""
        looked: list[Look] = []
        spent, clock, unit, unit_clock = self._turn(lambda: looked.append(look(self._on, command)))
        whole = looked[0]
        one, by_clock = round(spent / unit / parts, 3), round(clock / unit_clock / parts, 3)
        each = replace(whole, git=round(whole.git / parts, 2), tmux=round(whole.tmux / parts, 2))
        return Ratio(one, one, one, one, by_clock, round(clock / parts, 4), each)

    def _turn(self, act: Callable[[], object]) -> tuple[float, float, float, float]:
        """Processor time and elapsed time of it, and the lesser ones of two yardsticks."""
        units, clocks = zip(*(_spent(partial(self._on.run, *IMPORT_CLICK)) for _ in range(2)), strict=True)
        return (*_spent(act), min(units), min(clocks))


def _spent(act: Callable[[], object]) -> tuple[float, float]:
    clock: list[float] = []
    return processor_seconds(lambda: clock.append(seconds(act))), clock[0]


def look(on: Stage, command: Command) -> Look:
    with counting(on) as (counted, calls):
        peak = float(counted.run(*_PEAK, *command).splitlines()[-1])
        return Look(peak, calls("git"), calls("tmux"))


@contextmanager
def counting(on: Stage) -> Iterator[tuple[Stage, Callable[[str], int]]]:
    """git and tmux write down that they were called."""
    place = on.directory / "counting"
    place.mkdir()
    for tool in ("git", "tmux"):
        script = place / tool
        script.write_text(_COUNTING.format(log=place / f"{tool}.log", real=shutil.which(tool)))
        script.chmod(0o755)

    def calls(tool: str) -> int:
        log = place / f"{tool}.log"
        return len(log.read_text().splitlines()) if log.exists() else 0

    try:
        yield Stage(on.directory, {**on.env, "PATH": f"{place}:{on.env['PATH']}"}), calls
    finally:
        shutil.rmtree(place)


def processor_seconds(action: Callable[[], object]) -> float:
    """Seconds of processes that were waited for."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    action()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime
