"""The rows of all builders as last read, and what has changed since."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

import msgspec

from agent_farm.builders.events import Usage
from agent_farm.builders.proof import Proof
from agent_farm.builders.pull_request import PullRequest
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records
from agent_farm.builders.status import BUSY, Status
from agent_farm.documents import load_if_whole
from agent_farm.farm.farm import Farm
from agent_farm.farm.git_state import GitState, git_states
from agent_farm.farm.listing import Builder, read_statuses
from agent_farm.farm.panes import find_panes
from agent_farm.farm.proofs import read_proofs
from agent_farm.farm.renames import follow_renames
from agent_farm.farm.waiting import in_order
from agent_farm.operations.shown import BuilderShown
from agent_farm.settings import open_settings

Rows = dict[str, dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Difference:
    builders: tuple[Mapping[str, Any], ...] = ()
    removed: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        return bool(self.builders or self.removed)

    def to_json(self) -> dict[str, Any]:
        return {"builders": list(self.builders), "removed": list(self.removed)}


@dataclass(slots=True)
class Board:
    """Its methods block; one caller at a time."""

    farm: Farm
    rows: Rows = field(default_factory=dict)
    records: Records = field(default_factory=Records)
    _statuses: dict[str, Status] = field(default_factory=dict)
    _usage: dict[str, Usage | None] = field(default_factory=dict)
    _proofs: dict[str, Proof] = field(default_factory=dict)
    _requests: dict[str, PullRequest | None] = field(default_factory=dict)
    _git: dict[str, GitState] = field(default_factory=dict)
    _panes: Mapping[str, tuple[str, bool]] | None = None
    _elsewhere: Rows = field(default_factory=dict)

    def look(self, ids: Iterable[str] | None = None) -> Difference:
        """Read the registry, and the states of `ids` (None: all) and of builders whose records changed."""
        before = self.records
        self.records = self.farm.records()
        new = {id for id, record in self.records.items() if before.get(id) != record}
        new |= {record.id for record in in_order(self.records)}  # their places change with the others'
        wanted = self.records.keys() if ids is None else (set(ids) | new) & self.records.keys()
        self._read_statuses(self.records[id] for id in self.records if id in wanted)
        return self.look_elsewhere() if ids is None else self._difference()

    def look_elsewhere(self) -> Difference:
        """What is known about builders on other machines; another process asks them."""
        before, self._elsewhere = self._elsewhere, {}
        if self.farm.paths.fleet.exists():
            from agent_farm.operations.fleet.rows_elsewhere import known_rows

            self._elsewhere = {one.record.id: _row(one) for one in known_rows(self.farm)}
        for id, row in self._elsewhere.items():
            if id in before and _without_time(before[id]) == _without_time(row):
                self._elsewhere[id] = before[id]
        return self._difference()

    def look_at_panes(self) -> Difference:
        """One question to each tmux server; only builders whose pane came, went or died are read again."""
        found = find_panes(self.records.values())
        panes = {id: (one.pane.pane_id, one.pane.dead) for id, one in found.items() if one.pane is not None}
        known = all(one.known for one in found.values())
        was_unknown = self._panes is None or any(
            status.state == "unknown" for status in self._statuses.values()
        )
        if known and panes == self._panes and not was_unknown:
            return Difference()
        before, self._panes = self._panes or {}, panes
        changed = {name for name in panes.keys() | before.keys() if panes.get(name) != before.get(name)}
        everything = was_unknown or not known
        ids = [id for id in self.records if everything or id in changed]
        return self.look(ids)

    def look_at_git(self, ids: Iterable[str]) -> Difference:
        wanted = set(ids)
        chosen = [record for id, record in self.records.items() if id in wanted]
        still = [record.id for record in chosen if self._statuses[record.id].state not in BUSY]
        self._git |= git_states(self.farm, chosen, still=still)
        self.records |= follow_renames(self.farm, chosen, self._git)
        self._read_proofs(chosen)
        return self._difference()

    def open_requests(self) -> set[str]:
        """Builders whose pull requests may have been merged or closed since the last look."""
        return {id for id, one in self._requests.items() if one and one.number and one.state == "open"}

    def _read_statuses(self, records: Iterable[BuilderRecord]) -> None:
        chosen = list(records)
        if not chosen:
            return
        for id, status in read_statuses(self.farm, chosen).items():
            self._statuses[id] = _kept(self._statuses.get(id), status)
            self._usage[id] = load_if_whole(self.farm.run(id).usage, Usage)
            self._requests[id] = load_if_whole(self.farm.run(id).pull_request, PullRequest)
        self._read_proofs(chosen)

    def _read_proofs(self, records: Iterable[BuilderRecord]) -> None:
        # checks may have been declared since the last look
        self.farm = msgspec.structs.replace(self.farm, settings=open_settings(self.farm.root))
        self._proofs |= read_proofs(self.farm, records, self._git)

    def _builder(self, record: BuilderRecord) -> Builder:
        id = record.id
        return Builder(
            record,
            self._statuses[id],
            self._git.get(id),
            self._usage.get(id),
            proof=self._proofs.get(id),
            pull_request=self._requests.get(id),
        )

    def _difference(self) -> Difference:
        own = {id: _row(self._builder(record)) for id, record in self.records.items()}
        rows: Rows = {**self._elsewhere, **own}
        before, self.rows = self.rows, rows
        changed = tuple(row for id, row in rows.items() if before.get(id) != row)
        removed = tuple(id for id in before if id not in rows)
        for id in removed:
            self._statuses.pop(id, None)
            self._git.pop(id, None)
            self._usage.pop(id, None)
            self._requests.pop(id, None)
            self._proofs.pop(id, None)
        return Difference(changed, removed)


def _row(builder: Builder) -> dict[str, Any]:
    """The row as `status` shows it."""
    row: dict[str, Any] = msgspec.to_builtins(BuilderShown.of(builder))
    return row


def _without_time(row: Mapping[str, Any]) -> Mapping[str, Any]:
    """Without the time: asking git again is not a change."""
    return {**row, "git": {**row["git"], "at": None}} if row["git"] else row


def _kept(before: Status | None, now: Status) -> Status:
    """A state that was observed, not reported, has no time of its own: it is as old as its first sighting."""
    if before is None or now.source != "process":
        return now
    same = (before.state, before.source, before.reason) == (now.state, now.source, now.reason)
    return before if same else now
