"""registry.json: the records of all builders, safe for any number of processes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import lru_cache
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Raw, Struct

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord, record_from_json, stored_record
from agent_farm.disk import file_lock, replace_file
from agent_farm.errors import DamagedFile, ForeignFile, NewerFile
from agent_farm.own_files import read_own
from agent_farm.paths import FarmPaths

VERSION = 1


class Records(dict[str, BuilderRecord]):
    """Records by builder id. `unreadable` are the ids whose record cannot be read, with the reason; `kept`
    holds what is stored of those.

    Unreadable ones are builders all the same: their ids are taken, and they are written back unchanged.
    """

    def __init__(self, other: Records | None = None) -> None:
        super().__init__({} if other is None else other)
        self.unreadable: dict[str, DamagedFile] = {} if other is None else dict(other.unreadable)
        self.kept: dict[str, object] = {} if other is None else dict(other.kept)

    @property
    def ids(self) -> set[str]:
        """All ids that are taken."""
        return {*self, *self.unreadable}

    def match(self, prefix: str) -> BuilderRecord:
        """The builder that an unambiguous prefix of its id means."""
        id = match_builder(prefix, [*self, *self.unreadable])
        if id in self.unreadable:
            raise self.unreadable[id]
        return self[id]


class _Seen(Struct, frozen=True):
    """The file as this process last read or wrote it. Of hundreds of builders most are the same each time:
    `stored` holds the bytes of each."""

    content: bytes
    records: Records
    stored: Mapping[str, Raw]


class _Memory:
    seen: _Seen | None = None


@lru_cache(maxsize=4)
def _memory_of(file: Path, former: tuple[str, ...], called: str) -> _Memory:
    """Cached by what the farm is and was called, since the records name their sessions by that."""
    return _Memory()


class Registry(Struct, frozen=True):
    paths: FarmPaths

    @property
    def path(self) -> Path:
        return self.paths.registry

    def read(self) -> Records:
        """All records as of one moment. Takes no lock, since the file is always replaced as a whole."""
        try:
            content = self._content()
        except FileNotFoundError:
            return Records()
        seen = self._memory.seen
        if seen is None or seen.content != content:
            self._memory.seen = seen = _Seen(content, self._parsed(content), {})
        return Records(seen.records)

    def ids(self) -> Collection[str]:
        """All ids that are taken, without reading the records."""
        try:
            return self._documents(self._content()).keys()
        except FileNotFoundError:
            return ()

    @contextmanager
    def edit(self) -> Iterator[Records]:
        """The records under the lock; what they hold at the end of the block is stored, unless it raised."""
        with file_lock(self.path.with_suffix(".lock")):
            records = self.read()
            before = dict(records)
            yield records
            if records != before:
                self._store(records)

    def put(self, record: BuilderRecord) -> BuilderRecord:
        with self.edit() as records:
            records[record.id] = record
        return record

    def drop(self, *ids: str) -> None:
        """Ids that have no record are ignored."""
        with self.edit() as records:
            for id in ids:
                records.pop(id, None)

    @property
    def _memory(self) -> _Memory:
        return _memory_of(self.path, self.paths.former, self.paths.called)

    def _content(self) -> bytes:
        try:
            return read_own(self.path)
        except ForeignFile:
            raise
        except DamagedFile as error:
            raise self._damaged(f"{error.what}. {error.why or ''}".strip()) from error

    def _parsed(self, content: bytes) -> Records:
        records = Records()
        for id, document in self._documents(content).items():
            try:
                records[id] = record_from_json(id, document, self.paths)
            except DamagedFile as error:
                why = f"It is in {self.path}, and stays there as it is. The other builders work."
                records.unreadable[id] = DamagedFile(error.what, why=why, hint="af doctor --fix")
                records.kept[id] = document
        return records

    def _store(self, records: Records) -> None:
        seen = self._memory.seen or _Seen(b"", Records(), {})
        known, stored = Records(records), dict[str, Raw]()
        for id, document in list(records.kept.items()):
            if id in records:  # it has been added again
                del known.kept[id], known.unreadable[id]
            else:
                stored[id] = _encoded(document)
        for id, record in records.items():
            if id in seen.stored and seen.records.get(id) is record:
                stored[id] = seen.stored[id]
            else:
                document = stored_record(record, self.paths)
                stored[id] = _encoded(document)
                known[id] = record_from_json(id, _decoded(bytes(stored[id])), self.paths)
        content = b'{"version": %d, "builders": %s}\n' % (VERSION, msgspec.json.encode(stored))
        replace_file(self.path, content)
        self._memory.seen = _Seen(content, known, stored)

    def _documents(self, content: bytes) -> Mapping[str, object]:
        try:
            document = _decoded(content)
        except (ValueError, RecursionError) as error:
            raise self._damaged(f"It is not valid JSON. {error}") from error
        if not isinstance(document, dict) or "version" not in document:
            raise self._damaged("It has no version.")
        version = document["version"]
        if type(version) is not int or version < VERSION:
            raise self._damaged(f"Its version is {version!r:.20}; the lowest is {VERSION}.")
        if version != VERSION:
            raise NewerFile.of(self.path, version, VERSION)
        builders = document.get("builders")
        if not isinstance(builders, dict):
            raise self._damaged("It has no builders.")
        return builders

    def _damaged(self, why: str) -> DamagedFile:
        return DamagedFile(f"{self.path} is damaged", why=why, hint="af doctor")


def _encoded(document: object) -> Raw:
    try:
        return Raw(msgspec.json.encode(document))
    except UnicodeEncodeError:  # bytes of a name that are not UTF-8, which Python's own JSON can encode
        return Raw(json.dumps(document).encode())


def _decoded(content: bytes) -> Any:
    try:
        return msgspec.json.decode(content)
    except ValueError:  # such bytes, or no JSON at all
        return json.loads(content)
