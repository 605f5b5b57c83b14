"""One user's sources, by name in config.json; git sources are clones of our own beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

import msgspec

from agent_farm.ask.clones import discard_clone, make_clone, update_clone
from agent_farm.ask.config_file import ConfigManager
from agent_farm.ask.targets import (
    Kind,
    detect_kind,
    require_git_url,
    require_name,
    require_path,
    without_password,
)
from agent_farm.errors import AgentFarmError, DamagedFile, NotFound, UsageError, there_are

Narrate = Callable[[str], None]


class _Entry(msgspec.Struct, omit_defaults=True):
    """`docs` is a text that lctx has fetched."""

    type: Literal["git", "directory", "file", "docs"]
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    path: str | None = None


@dataclass(frozen=True, slots=True)
class Source:
    """`path` is what is read: the user's own file or directory, or our clone. `url` is for git only."""

    name: str
    kind: Kind
    path: Path
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    fault: str | None = None

    @property
    def problem(self) -> str | None:
        """Why the source cannot be read now, or None."""
        if self.fault:
            return self.fault
        if self.path.is_file() if self.kind == "file" else self.path.is_dir():
            return None
        if os.path.lexists(self.path):
            return f"{self.path} is no longer a {'file' if self.kind == 'file' else 'directory'}"
        return (
            f"its clone {self.path} is gone" if self.kind == "git" else f"{self.path} does not exist any more"
        )

    @property
    def shown_url(self) -> str | None:
        """The URL without a password."""
        return without_password(self.url) if self.url else None


class SourcesManager:
    def __init__(self, config: ConfigManager, *, narrate: Narrate | None = None) -> None:
        self.config = config
        self._narrate = narrate or (lambda text: None)

    @property
    def clones(self) -> Path:
        return self.config.sources_directory / "git"

    def list(self) -> tuple[Source, ...]:
        """All sources; DamagedFile if an entry is not a valid one."""
        return tuple(self._source(name, entry) for name, entry in self.config.sources.items())

    def overview(self) -> tuple[Source, ...]:
        """All sources; an invalid entry is listed with what is wrong with it."""
        return tuple(self._listed(name, entry) for name, entry in self.config.sources.items())

    def get(self, name: str) -> Source:
        """Raises NotFound, which names the existing sources."""
        entries = self.config.sources
        if name not in entries:
            names = [*entries, *self.config.groups]
            raise NotFound(
                f"Source not found: {name}",
                why=there_are(name, names) if names else "No sources are configured",
                hint="af sources list" if names else "af sources add NAME PATH|URL",
            )
        return self._source(name, entries[name])

    def require(self, names: Sequence[str]) -> tuple[Source, ...]:
        """The named sources, and those of named groups, each once and all of them readable."""
        groups = self.config.groups
        wanted = [one for name in names for one in groups.get(name, (name,))]
        found = tuple(self.get(name) for name in dict.fromkeys(wanted))
        for source in found:
            if source.problem:
                raise NotFound(
                    f"Source {source.name} cannot be read",
                    why=source.problem,
                    hint=f"af sources {'update' if source.kind == 'git' else 'remove'} {source.name}",
                )
        return found

    def add(
        self,
        name: str,
        target: str,
        *,
        kind: Kind | None = None,
        branch: str | None = None,
        commit: str | None = None,
    ) -> Source:
        require_name(name)
        self._require_free(name, self.config.sources)
        kind = kind or detect_kind(target)
        if kind != "git":
            if branch or commit:
                raise UsageError("--branch and --commit are for git sources", why=f"{target} is a {kind}")
            source = Source(name, kind, Path(require_path(target, kind)))
            self._record(source)
            return source
        source = Source(name, "git", self.clones / name, require_git_url(target), branch, commit)
        with make_clone(source, self._narrate):
            self._record(source)
        return source

    def remove(self, name: str) -> Path | None:
        """Forget it. The user's own files stay; a clone is deleted, or if it has work moved to the returned
        path."""
        source = self.get(name)
        self.config.change_sources(lambda entries: entries.pop(name, None))
        if source.kind != "git":
            return None
        return discard_clone(source)

    def update(self, name: str) -> Source:
        """Bring a git source up to date with its remote; a lost clone is made again."""
        source = self.get(name)
        if source.kind != "git":
            raise UsageError(
                f"{name} is a {source.kind}: it is read in place", hint=f"af sources show {name}"
            )
        if os.path.lexists(source.path):
            update_clone(source, self._narrate)
        else:
            with make_clone(source, self._narrate):
                pass
        return source

    def _record(self, source: Source) -> None:
        def change(entries: dict[str, Any]) -> None:
            self._require_free(source.name, entries)
            entries[source.name] = _entry_of(source)

        self.config.change_sources(change)

    def _require_free(self, name: str, entries: Mapping[str, Any]) -> None:
        taken = next((known for known in entries if known.lower() == name.lower()), None)
        if taken is not None:
            raise UsageError(
                f"A source {taken} already exists",
                why=f"it is {without_password(str(self.get(taken).url or self.get(taken).path))}",
                hint=f"af sources remove {taken}",
            )
        if name in self.config.groups:
            raise UsageError(f"A group {name} already exists", hint=f"$EDITOR {self.config.path}")

    def _listed(self, name: str, entry: Any) -> Source:
        try:
            return self._source(name, entry)
        except DamagedFile as error:
            return Source(name, "file", self.config.path, fault=error.why)

    def _source(self, name: str, entry: Any) -> Source:
        """Checks an entry that somebody wrote by hand like one of ours."""
        try:
            require_name(name)
            found = msgspec.convert(entry, _Entry)
            if found.type == "git":
                url = require_git_url(found.url or "")
                return Source(name, "git", self.clones / name, url, found.branch, found.commit)
            if found.type == "docs":
                return Source(name, "file", self.config.sources_directory / "docs" / name / "content.txt")
            path = Path(found.path or "").expanduser()
            if not path.is_absolute() or any(ord(char) < 32 for char in str(path)):
                raise ValueError("its path must be absolute and without control characters")
            return Source(name, found.type, path)
        except (AgentFarmError, ValueError) as error:
            raise DamagedFile(
                f"Source {name!r} in {self.config.path} cannot be used",
                why=str(error),
                hint=f"$EDITOR {self.config.path}",
            ) from error


def _entry_of(source: Source) -> Any:
    path = None if source.kind == "git" else str(source.path)
    return msgspec.to_builtins(_Entry(source.kind, source.url, source.branch, source.commit, path))
