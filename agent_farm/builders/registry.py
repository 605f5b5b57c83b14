"""registry.json: the records of all builders, safe for any number of processes."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_farm.builders.ids import match_builder
from agent_farm.builders.record import BuilderRecord, record_from_json, stored_record
from agent_farm.disk import file_lock, load_json, replace_file
from agent_farm.errors import DamagedFile, ForeignFile, NewerFile
from agent_farm.paths import FarmPaths

VERSION = 1


class Records(dict[str, BuilderRecord]):
    """By builder id. `unreadable` are the ones that cannot be read, as they are stored, and why.

    They are builders all the same: their ids are taken, and they are written back as they are.
    """

    def __init__(self) -> None:
        super().__init__()
        self.stored: Mapping[str, object] = {}
        self.unreadable: dict[str, DamagedFile] = {}

    @property
    def ids(self) -> set[str]:
        """All that are taken."""
        return {*self, *self.unreadable}

    def match(self, prefix: str) -> BuilderRecord:
        """The builder that an unambiguous prefix of its id means."""
        id = match_builder(prefix, [*self, *self.unreadable])
        if id in self.unreadable:
            raise self.unreadable[id]
        return self[id]


class Registry(Struct, frozen=True):
    paths: FarmPaths

    @property
    def path(self) -> Path:
        return self.paths.registry

    def read(self) -> Records:
        """All records as of one moment; no lock is needed, since the file is replaced whole."""
        records = Records()
        try:
            records.stored = self._stored()
        except FileNotFoundError:
            return records
        for id, document in records.stored.items():
            try:
                records[id] = record_from_json(id, document, self.paths)
            except DamagedFile as error:
                why = f"It is in {self.path}, and stays there as it is. The other builders work."
                records.unreadable[id] = DamagedFile(error.what, why=why, hint="af doctor --fix")
        return records

    def ids(self) -> Collection[str]:
        """All that are taken, without a look at the records."""
        try:
            return self._stored().keys()
        except FileNotFoundError:
            return ()

    @contextmanager
    def edit(self) -> Iterator[Records]:
        """The records under the lock; what the block left in them is stored when it ends well."""
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
        """Without an error where there is none."""
        with self.edit() as records:
            for id in ids:
                records.pop(id, None)

    def _store(self, records: Records) -> None:
        kept = {id: records.stored[id] for id in records.unreadable if id not in records}
        stored = kept | {id: stored_record(record, self.paths) for id, record in records.items()}
        document = {"version": VERSION, "builders": stored}
        replace_file(self.path, json.dumps(document) + "\n")

    def _stored(self) -> Mapping[str, object]:
        try:
            document: Any = load_json(self.path)
        except ForeignFile:
            raise
        except DamagedFile as error:
            raise self._damaged(f"{error.what}. {error.why or ''}".strip()) from error
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
