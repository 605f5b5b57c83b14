"""Runs the checks of the queue's trees, several at a time, and keeps the end of what they print."""

from __future__ import annotations

import os
from collections.abc import Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from pathlib import Path
from threading import Thread

from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.landing.train.driving import TreeToCheck
from agent_farm.landing.verdicts import CheckResult, Reuse, kept_verdict, verdict_of
from agent_farm.own_files import open_own
from agent_farm.printable import printable

_TAIL_LINES = 40
_TAIL_BYTES = 6000
_LONGEST_COMMAND = 100


@dataclass
class Judge:
    farm: Farm
    checks: Sequence[Check]
    _running: dict[tuple[str, bool], Future[bool]] = field(default_factory=dict)

    def passes(self, asked: Sequence[TreeToCheck]) -> bool:
        """Whether the first passes; the others start at the same time."""
        if len(asked) == 1 and (asked[0].at.tree, asked[0].again) not in self._running:
            return self._verdict(asked[0])
        first = self._begun(asked[0])
        for one in asked[1:]:
            if sum(not future.done() for future in self._running.values()) < len(asked):
                self._begun(one)
        passed = first.result()
        del self._running[asked[0].at.tree, asked[0].again]
        return passed

    def _begun(self, one: TreeToCheck) -> Future[bool]:
        """Start a check in a daemon thread: the program's end does not wait for it, and ends the check."""
        key = (one.at.tree, one.again)
        if key not in self._running:
            future = self._running[key] = Future[bool]()
            Thread(target=self._settle_future, args=(future, one), daemon=True).start()
        return self._running[key]

    def _settle_future(self, future: Future[bool], one: TreeToCheck) -> None:
        try:
            future.set_result(self._verdict(one))
        except BaseException as error:
            future.set_exception(error)

    def _verdict(self, one: TreeToCheck) -> bool:
        """The output only goes to its log: with several checks, nobody could tell which one printed it."""
        reuse: Reuse = "green" if one.again else "all"
        verdict = verdict_of(self.farm, one.at.commit, self.checks, reuse=reuse)
        assert verdict.tree == one.at.tree
        return verdict.passed

    def red(self, tree: str) -> CheckResult | None:
        """The stored result of the check that failed on this tree."""
        verdict = kept_verdict(self.farm, tree, self.checks)
        return verdict.failed if verdict else None


def one_line(text: str) -> str:
    line = " ".join("".join(char if char.isprintable() else " " for char in text).split())
    return line if len(line) <= _LONGEST_COMMAND else f"{line[: _LONGEST_COMMAND - 1]}…"


def tail_of(result: CheckResult) -> tuple[str, ...]:
    """The last lines of its log, made printable for a message."""
    if result.changed:
        return result.changed
    lines = _last_bytes(result.log).decode("utf-8", "replace").splitlines()
    return tuple(printable(line) for line in lines[-_TAIL_LINES:])


def _last_bytes(file: Path) -> bytes:
    try:
        with open_own(file) as content:
            content.seek(max(0, os.fstat(content.fileno()).st_size - _TAIL_BYTES))
            return content.read(_TAIL_BYTES)
    except (OSError, AgentFarmError):
        return b""
