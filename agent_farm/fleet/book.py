"""fleet.json: the machines of a farm, and which of its builders are where.

These builders are not in the farm's registry: whatever acts on builders here cannot mistake them for its own,
and a farm without a fleet has no such file.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct, field
from msgspec.structs import replace

from agent_farm.builders.events import Usage
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.ref_names import ObjectName
from agent_farm.builders.spending import Spent
from agent_farm.builders.status import Status
from agent_farm.disk import file_lock
from agent_farm.documents import decode, store
from agent_farm.errors import NotFound, there_are
from agent_farm.farm.farm import Farm
from agent_farm.farm.git_state import GitState
from agent_farm.own_files import read_own

# What is read back becomes a word for ssh or git.
Word = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]*\Z")]
Place = Annotated[str, Meta(pattern=r"\A/[^\x00-\x1f\x7f]*\Z", max_length=2000)]
FARM_NAME = re.compile(r"[a-z0-9][a-z0-9-]{0,60}")
_FIRST_WAIT, _LONGEST_WAIT = 30.0, 14_400.0
_NAME = Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9-]{0,60}\Z")]


class Machine(Struct, frozen=True):
    """`program` is `af` there, `place` the farm there. `problem` is why the last look failed, `seen_at` when
    one last succeeded; `misses` have failed since `silent_since`, the last one at `missed_at`. `is_late`:
    somebody looked since, and could not wait for the answer. `pushed` are the bases that the machine has. A
    `draining` machine takes no new builders."""

    address: str
    program: Place
    place: Place
    problem: str | None = None
    seen_at: float = 0.0
    silent_since: float | None = None
    missed_at: float = 0.0
    misses: int = 0
    is_late: bool = False
    pushed: dict[str, ObjectName] = field(default_factory=dict)
    draining: bool = False


class Row(Struct, frozen=True):
    """A builder as its machine last reported it."""

    record: BuilderRecord
    status: Status
    git: GitState | None
    usage: Usage | None


class LastCheckpoint(Struct, frozen=True):
    """The last checkpoint fetched, made at `at`."""

    commit: ObjectName
    at: float


class Used(Struct, frozen=True):
    """What a builder had used when it was removed: one entry for each day and start."""

    runtime: str
    spent: tuple[Spent, ...]
    landed: bool


class Placed(Struct, frozen=True):
    """A builder of this farm on another machine; without a `row` it has not been reported yet.

    `is_known`: its machine has confirmed that it made it. `gone`: its machine was asked, and has no such
    builder. `runtime` and `permissions` are as requested here, so that a machine's report cannot widen them.
    `new_branch`: its branch was made for it. `issue` and `source` are what it was spawned from, as known
    here. `term` is the number under which it was placed: of two with the same id, the one with the higher
    term is the builder. `used` is only set for a builder that was removed.
    """

    host: Word
    branch: str
    base: str
    base_commit: ObjectName
    title: str
    created_at: str
    is_known: bool = False
    gone: bool = False
    runtime: str | None = None
    permissions: str | None = None
    new_branch: bool = True
    issue: str | None = None
    source: str | None = None
    row: Row | None = None
    term: int = 1
    checkpoint: LastCheckpoint | None = None
    problem: str | None = None
    used: Used | None = None


class Left(Struct, frozen=True):
    """A builder that must not continue at `host`: there its term is below `term`. `commit` is its work from
    there, once that was fetched, at `at`."""

    id: str
    host: str
    term: int
    commit: ObjectName | None = None
    at: float = 0.0


class Refused(Struct, frozen=True):
    """A machine's checkpoint was refused this many times, last at `at`."""

    times: int
    at: float

    def is_over(self, now: float) -> bool:
        """Whether to fetch it again; what is fetched in vain stays here until git collects it."""
        return not 0 <= now - self.at < min(_LONGEST_WAIT, _FIRST_WAIT * 2.0 ** min(self.times, 20))


class Cluster(Struct, frozen=True):
    """The Ray cluster of a farm: HOST:PORT, and the directory of its certificates or ""."""

    address: Annotated[str, Meta(pattern=r"\A[A-Za-z0-9][A-Za-z0-9.-]*:[0-9]{1,5}\Z")]
    tls: str = ""


class Book(Struct, frozen=True):
    """`farm` is the name of this farm on its machines; `removed` are builders that can be restored; one that
    is being restored is in `builders`, too.

    `terms` is the highest term given so far. `refused` are refused checkpoints, by the ref they were meant
    for.
    """

    farm: _NAME
    machines: dict[Word, Machine] = field(default_factory=dict)
    builders: dict[str, Placed] = field(default_factory=dict)
    removed: dict[str, Placed] = field(default_factory=dict)
    cluster: Cluster | None = None
    left: tuple[Left, ...] = ()
    terms: int = 0
    refused: dict[str, Refused] = field(default_factory=dict)

    def fences(self, host: str) -> dict[str, int]:
        """For each builder placed elsewhere since, the lowest term that is valid there."""
        return {one.id: one.term for one in self.left if one.host == host}

    def machine(self, host: str) -> Machine:
        if host not in self.machines:
            why = there_are(host, sorted(self.machines)) if self.machines else "The fleet has none."
            raise NotFound(f"No machine {host}", why=why, hint="af fleet add ssh://HOST")
        return self.machines[host]

    def builder(self, id: str) -> Placed:
        """NotFound if it was pruned, or did not come back, since it was chosen."""
        if id not in self.builders:
            raise NotFound(f"There is no builder {id}", hint="af status")
        return self.builders[id]

    def with_builder(self, id: str, placed: Placed) -> Book:
        return replace(self, builders={**self.builders, id: placed})

    def without_builder(self, id: str) -> Book:
        return replace(self, builders={other: one for other, one in self.builders.items() if other != id})

    def without_removed(self, id: str) -> Book:
        return replace(self, removed={other: one for other, one in self.removed.items() if other != id})

    def with_machine(self, host: str, machine: Machine) -> Book:
        return replace(self, machines={**self.machines, host: machine})

    def on(self, host: str) -> Mapping[str, Placed]:
        return {id: placed for id, placed in self.builders.items() if placed.host == host}


def next_term(farm: Farm) -> int:
    """A number under which no builder was placed yet."""
    with edit_book(farm) as held:
        held[0] = replace(held[0], terms=held[0].terms + 1)
        return held[0].terms


class _Last:
    """The book as this process last read it, with its bytes: parsing a thousand builders takes 10 ms."""

    known: tuple[bytes, Book] | None = None


@lru_cache(maxsize=2)
def _last_of(file: Path) -> _Last:
    return _Last()


def read_book(farm: Farm) -> Book:
    try:
        content = read_own(farm.paths.fleet)
    except FileNotFoundError:
        return Book(f"{farm.paths.farm_name}-{os.urandom(4).hex()}")
    last = _last_of(farm.paths.fleet)
    known = last.known
    if known is None or known[0] != content:
        last.known = known = (content, decode(farm.paths.fleet, content, Book))
    return known[1]


@contextmanager
def edit_book(farm: Farm) -> Iterator[list[Book]]:
    """The book under its lock; what the block leaves in the list is stored if it ends without an error."""
    with file_lock(farm.paths.fleet.with_suffix(".lock")):
        book = read_book(farm)
        held = [book]
        yield held
        if held[0] == book:
            return
        if held[0].machines or held[0].builders or held[0].removed or held[0].cluster:
            _last_of(farm.paths.fleet).known = (store(farm.paths.fleet, held[0]), held[0])
        else:
            farm.paths.fleet.unlink(missing_ok=True)
