"""registry.json: the records of all builders, safe for any number of processes."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.stored_record import record_from_json, stored_record
from agent_farm.disk import file_lock, load_json, replace_file
from agent_farm.errors import DamagedFile, ForeignFile, NewerFile
from agent_farm.paths import FarmPaths

VERSION = 1

Records = dict[str, BuilderRecord]


@dataclass(frozen=True, slots=True)
class Registry:
    paths: FarmPaths

    @property
    def path(self) -> Path:
        return self.paths.registry

    def read(self) -> Records:
        """All records as of one moment; no lock is needed, since the file is replaced whole."""
        try:
            document = load_json(self.path)
        except FileNotFoundError:
            return {}
        except ForeignFile:
            raise
        except DamagedFile as error:
            raise self._damaged(f"{error.what}. {error.why or ''}".strip()) from error
        if not isinstance(document, dict) or "version" not in document:
            raise self._damaged("It has no version.")
        version = document["version"]
        if type(version) is not int or version < VERSION:
            raise self._damaged(f"Its version is {version!r:.20}; the first there was is {VERSION}.")
        if version != VERSION:
            raise NewerFile(
                f"{self.path} has version {version}; this af reads version {VERSION}",
                why="A newer af wrote it.",
                hint="pip install --upgrade codev-agent-farm",
            )
        if not isinstance(document.get("builders"), dict):
            raise self._damaged("It has no builders.")
        try:
            stored = document["builders"].items()
            return {id: record_from_json(id, record, self.paths) for id, record in stored}
        except DamagedFile as error:
            raise self._damaged(error.what) from error

    @contextmanager
    def edit(self) -> Iterator[Records]:
        """The records under the lock; what the block left in them is stored when it ends well."""
        with file_lock(self.path.with_suffix(".lock")):
            records = self.read()
            before = dict(records)
            yield records
            if records != before:
                self._store(records)

    def _store(self, records: Records) -> None:
        stored = {id: stored_record(record, self.paths) for id, record in records.items()}
        document = {"version": VERSION, "builders": stored}
        replace_file(self.path, json.dumps(document, indent=1) + "\n")

    def _damaged(self, why: str) -> DamagedFile:
        return DamagedFile(f"{self.path} is damaged", why=why, hint="af doctor")
