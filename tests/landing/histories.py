"""The landing queue's own code in a world of sets: commits hold features, a check looks for bad ones.

Whoever drives it may be killed at every step, others add branches and commit to the target meanwhile.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field

from msgspec import structs

from agent_farm.landing.train.driving import Clash, Composed, TargetIsRed, TreeToCheck, drive
from agent_farm.landing.train.landing_journal import Entry, Move, Queue, Returned
from agent_farm.landing.train.line import MOST_OVERTAKEN, LandingLine, Waiting, with_added

ROOT = "0"


class Killed(BaseException):
    """As by `kill -9`: nobody handles it."""


@dataclass(slots=True)
class Memory:
    """A world and its book, which outlive whoever drives them.

    `bad` are features with which a check is red, alone or, as pairs, together; `clashing` pairs do not merge.
    """

    chance: random.Random
    bad: set[frozenset[str]]
    clashing: set[frozenset[str]]
    flaky: float = 0.0
    kills: float = 0.0
    kill_at: int | None = None
    persons: float = 0.0
    later: list[str] = field(default_factory=list)  # branches that are added while it runs
    commits: dict[str, tuple[str, ...]] = field(default_factory=lambda: {ROOT: ()})
    parents: dict[str, str] = field(default_factory=dict)
    target: str = ROOT
    green: set[tuple[str, ...]] = field(default_factory=set)
    reds: dict[tuple[str, ...], int] = field(default_factory=dict)
    by_persons: list[str] = field(default_factory=list)
    given_back: list[str] = field(default_factory=list)
    doubted: list[str] = field(default_factory=list)
    queue: Queue | None = None
    steps: int = 0

    def step(self) -> None:
        self.steps += 1
        if self.steps == self.kill_at or self.chance.random() < self.kills:
            raise Killed
        if self.chance.random() < self.persons:
            self.commit_by_a_person()
        if self.later and not self.require().closed and self.chance.random() < 0.1:
            self.add(self.later.pop())

    def commit_by_a_person(self) -> None:
        name = f"p{len(self.by_persons)}"
        self.target = self.commit(self.target, name)
        self.by_persons.append(self.target)

    def commit(self, parent: str, *features: str) -> str:
        name = f"{parent}/{','.join(features)}"
        self.commits[name] = (*self.commits[parent], *features)
        self.parents[name] = parent
        return name

    def line_of(self, commit: str) -> list[str]:
        found = [commit]
        while found[-1] in self.parents:
            found.append(self.parents[found[-1]])
        return found

    def add(self, id: str) -> None:
        queue = self.queue or Queue("main", None, "merge", self.target, LandingLine(), {})
        risk = self.chance.choice((0.1, 0.3, 0.6))
        known = [pair for pair in self.clashing if id in pair and self.chance.random() < 0.5]
        clashes = tuple(sorted({other for pair in known for other in pair if other != id}))
        line = with_added(queue.line, [Waiting(id, queue.next_age, risk, clashes)])
        entries = {**queue.entries, id: Entry(id, "0" * 40, id, id, "", "")}
        self.queue = structs.replace(
            queue, line=line, entries=entries, next_age=queue.next_age + 1, sifted=False
        )

    # the book

    def require(self) -> Queue:
        assert self.queue is not None
        return self.queue

    def update(self, change: Callable[[Queue], Queue]) -> Queue:
        self.step()
        self.queue = change(self.require())
        waiting = [*self.queue.line.waiting, *(one for group in self.queue.line.held for one in group)]
        assert self.clashing or all(one.overtaken <= MOST_OVERTAKEN for one in waiting)
        self.step()
        return self.queue

    # the world

    def head(self) -> str:
        return self.target

    def merge(self, commit: str, id: str) -> bool:
        return not any(id in pair and pair - {id} & set(self.commits[commit]) for pair in self.clashing)

    def sift(self, queue: Queue) -> Mapping[str, Returned | None]:
        self.step()
        return {
            id: Returned(id, "conflict", "conflicts")
            for id in queue.line.ids()
            if not self.merge(queue.head, id)
        }

    def compose(self, queue: Queue, ids: Sequence[str]) -> Composed | Clash:
        current = queue.head
        for id in ids:
            if not self.merge(current, id):
                return Clash(id)
            current = self.commit(current, id)
        return Composed(current, " ".join(sorted(self.commits[current])))

    def passes(self, commit: str) -> bool:
        return not any(one <= set(self.commits[commit]) for one in self.bad)

    def judge(self, asked: Sequence[TreeToCheck]) -> bool:
        self.step()
        found = []
        for one in asked:
            green = self.passes(one.at.commit) and self.chance.random() >= self.flaky
            content = tuple(sorted(self.commits[one.at.commit]))
            if green:
                self.green.add(content)
            else:
                self.reds[content] = self.reds.get(content, 0) + 1
            found.append(green)
        self.step()
        return found[0]

    def blame(self, queue: Queue, id: str) -> Returned:
        made = self.compose(queue, [*queue.line.held_ids(), id])
        assert isinstance(made, Composed)
        assert self.reds[tuple(sorted(self.commits[made.commit]))] >= 2, "blamed without a repeat"
        return Returned(id, "red", "is red")

    def seal(self, queue: Queue, ids: Sequence[str], tree: str) -> str:
        made = self.compose(queue, ids)
        assert isinstance(made, Composed)
        assert made.tree == tree
        return made.commit

    def advance(self, queue: Queue, move: Move) -> bool:
        self.step()
        if self.target != move.before:
            return False
        assert tuple(sorted(self.commits[move.after])) in self.green, "landed what no check passed on"
        assert move.before in self.line_of(move.after), "history was rewritten"
        self.target = move.after
        self.step()
        return True

    def has_landed(self, queue: Queue, move: Move) -> bool:
        return move.after in self.line_of(self.target)

    def touched(self, queue: Queue, head: str) -> tuple[str, ...]:
        return tuple(id for id in queue.line.ids() if self.chance.random() < 0.2)

    def give_back(self, queue: Queue, one: Returned) -> str:
        self.step()
        if one.sent_at is None:
            self.given_back.append(one.id)
        else:  # killed before it was known whether it was sent
            self.doubted.append(one.id)
        self.step()
        return "submitted"


def run(memory: Memory, width: int = 1) -> bool:
    """To the end, going on after each kill; False where the target itself is red."""
    while True:
        try:
            for _ in drive(memory, memory, width):
                pass
        except Killed:
            memory.kill_at = None
        except TargetIsRed:
            return False
        else:
            return True


def require_sound(memory: Memory, ids: Sequence[str], *, ended: bool) -> None:
    queue = memory.require()
    content = memory.commits[memory.target]
    assert len(content) == len(set(content)), "landed twice"
    assert set(memory.by_persons) <= set(memory.line_of(memory.target)), "a person's commit is lost"
    landed = [one.id for one in queue.landed]
    back = [one.id for one in queue.returned]
    assert sorted(landed) == sorted(set(content) & set(ids))
    assert len(set(landed + back)) == len(landed + back)
    assert set(back) <= {*memory.given_back, *memory.doubted}
    assert len(memory.given_back) == len(set(memory.given_back)), "told twice"
    if ended:
        assert sorted(landed + back) == sorted(set(ids) - set(memory.later))
        assert queue.closed
