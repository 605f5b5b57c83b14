"""The landing queue's world for this repository: its checks and its builders."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.farm.own_events import note
from agent_farm.git.advancing import HeadMoved, MergeRefused, advance
from agent_farm.git.checkout import Checkout
from agent_farm.git.divergence import commit_trees, merge_base
from agent_farm.git.entries import changes_between
from agent_farm.git.landing_hooks import HookRefused, Hooks, find_hooks
from agent_farm.git.merge_trees import merged_trees
from agent_farm.git.merging import Making, MergeConflicts, Review, Work
from agent_farm.git.patches import changed_paths
from agent_farm.git.settling import Move as GitMove
from agent_farm.git.settling import settle_interrupted_move
from agent_farm.landing.marks import mark_landed
from agent_farm.landing.place import Tell, landing_lock
from agent_farm.landing.review import HookReview
from agent_farm.landing.submodule_pointers import require_known_pointers
from agent_farm.landing.train.driving import Clash, Composed, TreeToCheck
from agent_farm.landing.train.judging import Judge, one_line, tail_of
from agent_farm.landing.train.landing_journal import Entry, Move, Queue, Returned
from agent_farm.landing.train.risk import note_end
from agent_farm.landing.work import require_none_of_afs
from agent_farm.launch import as_command
from agent_farm.shield import Shield

GiveBack = Callable[[BuilderRecord, Queue, Returned], str]


@dataclass
class FarmWorld:
    """`give_back_to` sends a message to a builder and says how that went."""

    farm: Farm
    checkout: Checkout
    into: str
    checks: Sequence[Check]
    give_back_to: GiveBack
    tell: Tell
    notes: list[str] = field(default_factory=list)
    _judge: Judge = field(init=False)
    _made: dict[tuple[str, ...], Composed | Clash | Returned] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._judge = Judge(self.farm, self.checks)

    def head(self) -> str:
        head = self.checkout.head()
        if head.branch != self.into:
            switch = as_command("git", "-C", self.checkout.path, "switch", self.into)
            raise AgentFarmError(
                f"{self.checkout.path} is no longer on {self.into}",
                why="The queue lands on that branch. Waiting builders stay in the queue.",
                hint=f"{switch} && af land --continue",
            )
        return head.commit

    # which branches can be merged at all

    def sift(self, queue: Queue) -> Mapping[str, Returned | None]:
        repository, found = self.farm.repository, dict[str, Returned | None]()
        entries = [queue.entries[id] for id in queue.line.ids()]
        records = self.farm.registry.read()
        results = merged_trees(repository, [(queue.head, entry.tip) for entry in entries])
        own = commit_trees(repository, [queue.head])[queue.head]
        for entry, result in zip(entries, results, strict=True):
            record = _builder_of(entry, records)
            if record is None:
                found[entry.id] = _removed(entry.id)
            elif result.conflicts:
                found[entry.id] = _conflict(entry.id, queue.into, result.conflicts)
            elif result.tree == own:
                found[entry.id] = None
            elif refused := self._refused(record, queue.head, result.tree):
                found[entry.id] = refused
        return found

    def _refused(self, record: BuilderRecord, head: str, tree: str) -> Returned | None:
        try:
            require_none_of_afs(record, changes_between(self.checkout, head, tree))
            require_known_pointers(self.farm, self.checkout, record, head, tree)
        except AgentFarmError as error:
            return Returned(record.id, "refused", error.sentence, error.evidence)
        return None

    # what is checked, and what lands

    def compose(self, queue: Queue, ids: Sequence[str]) -> Composed | Clash | Returned:
        """Built on what was composed before: a longer row starts where a shorter one ended."""
        current: Composed | Clash | Returned = Composed(
            queue.head, commit_trees(self.farm.repository, [queue.head])[queue.head]
        )
        for number, id in enumerate(ids, 1):
            assert isinstance(current, Composed)
            key = (queue.head, *(queue.entries[one].tip for one in ids[:number]))
            if key not in self._made:
                self._made[key] = self._merged(queue, queue.entries[id], current)
            current = self._made[key]
            if not isinstance(current, Composed):
                return current
        return current

    def _merged(self, queue: Queue, entry: Entry, on: Composed) -> Composed | Clash | Returned:
        hooks = self._hooks()
        has_own = any(map(hooks.find, ("pre-commit", "pre-merge-commit")))
        try:
            with self._review(hooks if has_own else None) as review:
                making = Making(self.farm.repository, _work(entry), queue.strategy, None, review, False)
                commit = making.after(on.commit)
        except MergeConflicts as error:
            return Clash(entry.id, error.evidence)
        except (HookRefused, MergeRefused) as error:  # concerns this branch alone: the others go on
            return Returned(entry.id, "refused", error.sentence, error.evidence)
        return Composed(commit, commit_trees(self.farm.repository, [commit])[commit])

    @contextmanager
    def _review(self, hooks: Hooks | None) -> Iterator[Review]:
        """Hooks run in a place of their own; the landing lock keeps others out of it."""
        if hooks is None:
            yield Review()
            return
        with landing_lock(self.farm, self.checkout, tell=self.tell):
            review = HookReview(self.farm, self.checkout, hooks, self.notes)
            try:
                yield review
            finally:
                review.trial.close()

    def _hooks(self) -> Hooks:
        return find_hooks(self.checkout, never_below=self.farm.paths.worktrees)

    def judge(self, asked: Sequence[TreeToCheck]) -> bool:
        return self._judge.passes(asked)

    def blame(self, queue: Queue, id: str) -> Returned:
        made = self.compose(queue, [*queue.line.held_ids(), id])
        red = self._judge.red(made.tree) if isinstance(made, Composed) else None
        self._note_end(queue, id, failed=True)
        if red is None:
            return Returned(id, "red", "its check was red twice")
        what = f"`{one_line(red.command)}` {red.told} on {queue.into} with its commits merged"
        return Returned(id, "red", f"{what}, twice", tail_of(red), str(red.log))

    def last_words(self) -> tuple[str, ...]:
        """The end of the check's log, of the check that was red on the target itself."""
        red = self._judge.red(commit_trees(self.farm.repository, [head := self.head()])[head])
        return (*tail_of(red), str(red.log)) if red else ()

    def seal(self, queue: Queue, ids: Sequence[str], tree: str) -> str | Returned:
        hooks = self._hooks()
        proof = "".join(f"\nChecked: {one_line(check.command)} on {tree}" for check in self.checks)
        current, last = queue.head, ""
        with self._review(hooks if hooks.directory else None) as review:
            records = self.farm.registry.read()
            for id in ids:
                entry = queue.entries[id]
                if _builder_of(entry, records) is None:  # whoever removed it may have discarded its commits
                    return _removed(id)
                work = _work(entry, entry.trailer + proof)
                making = Making(self.farm.repository, work, queue.strategy, None, review, hooks.signs)
                last = id
                try:
                    after = making.after(current)
                    if queue.strategy == "rebase" and after != current:
                        parent = making.parent_of(after)
                        after = making.copied(after, making.tree_of(after), parent, work.trailer)
                except HookRefused as error:
                    return Returned(id, "refused", error.sentence, error.evidence)
                current = after
        made = commit_trees(self.farm.repository, [current])[current]
        if made != tree:
            raise AgentFarmError(
                f"The tree of {last} is not the one that was checked",
                why="A hook of the repository does not change files in the same way each time."
                if hooks.directory
                else f"It is {made}, and the check passed on {tree}.",
                hint="af land --abort",
            )
        return current

    def advance(self, queue: Queue, move: Move) -> bool:
        hooks = self._hooks()
        what = ", ".join(move.ids)[:300]
        with landing_lock(self.farm, self.checkout, tell=self.tell) as lock, Shield() as shield:
            settle_interrupted_move(self.checkout)
            if self.head() != move.before:
                return False
            step = GitMove(what, queue.into, move.before, move.after)
            try:
                advance(self.checkout, step, hooks=hooks.directory, fds=[lock], shield=shield)
            except HeadMoved:
                return False
            except MergeRefused as error:
                error.hint = f"{error.hint or as_command('git', 'status')} && af land --continue"
                raise
        self._after_landing(queue, move, hooks)
        return True

    def _after_landing(self, queue: Queue, move: Move, hooks: Hooks) -> None:
        records = self.farm.registry.read()
        for id in move.ids:
            self._note_end(queue, id, failed=False)
            if record := _builder_of(queue.entries[id], records):
                note(self.farm, record, "merged", f"into {queue.into}, now {move.after[:12]}")
                self.notes += mark_landed(self.farm, record, self.checkout.path)
        try:
            self.notes += hooks.run("post-merge", "1" if queue.strategy == "squash" else "0")
        except HookRefused as error:  # the work has landed, whatever this hook returns
            self.notes += [error.what, *error.evidence]

    def has_landed(self, queue: Queue, move: Move) -> bool:
        with landing_lock(self.farm, self.checkout, tell=self.tell):
            settle_interrupted_move(self.checkout)
            making = Making(self.farm.repository, Work(move.after, "", ""), "merge", None, Review(), False)
            return making.contains(self.head(), move.after)

    def touched(self, queue: Queue, head: str) -> tuple[str, ...]:
        ids = [*queue.line.ids(), *queue.line.held_ids()]
        files = files_of(self.farm, head, {id: queue.entries[id].tip for id in ids})
        trees = commit_trees(self.farm.repository, [queue.head, head])
        change = (trees[queue.head], trees[head])
        theirs = changed_paths(self.farm.repository, [change]).get(change, frozenset())
        return tuple(id for id in ids if files[id] & theirs)

    def give_back(self, queue: Queue, one: Returned) -> str:
        record = _builder_of(queue.entries[one.id], self.farm.registry.read())
        if record is None:
            return "its builder is gone"
        if one.sent_at is None:
            note(self.farm, record, "returned", one.what)
        return self.give_back_to(record, queue, one)

    def _note_end(self, queue: Queue, id: str, *, failed: bool) -> None:
        record = _builder_of(queue.entries[id], self.farm.registry.read())
        if record is not None:
            tip = queue.entries[id].tip if failed else None
            note_end(self.farm.paths.landing_record, id, record.runtime, failed_tip=tip)


def files_of(farm: Farm, head: str, tips: Mapping[str, str]) -> dict[str, frozenset[str]]:
    """The files that each branch changes since it left the history of `head`."""
    bases = {id: merge_base(farm.repository, head, tip) for id, tip in tips.items()}
    trees = commit_trees(farm.repository, [*tips.values(), *(base for base in bases.values() if base)])
    changes = {id: (trees[base], trees[tips[id]]) for id, base in bases.items() if base}
    paths = changed_paths(farm.repository, set(changes.values()))
    return {id: paths.get(changes[id], frozenset()) if id in changes else frozenset() for id in tips}


def _builder_of(entry: Entry, records: Mapping[str, BuilderRecord]) -> BuilderRecord | None:
    """None if it was removed, even if another builder has its id now."""
    record = records.get(entry.id)
    return record if record is not None and record.created_at == entry.made_at else None


def _work(entry: Entry, trailer: str | None = None) -> Work:
    return Work(entry.tip, entry.name, entry.subject, entry.trailer if trailer is None else trailer)


def _removed(id: str) -> Returned:
    return Returned(id, "refused", "it was removed")


def _conflict(id: str, into: str, files: Sequence[str]) -> Returned:
    return Returned(id, "conflict", f"It conflicts with {into}", tuple(files))
