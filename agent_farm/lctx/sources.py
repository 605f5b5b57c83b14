"""The sources of one user: named, kept in config.json; git ones are clones of our own beside it."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError, DamagedFile, NotFound, UsageError, nearest
from agent_farm.lctx.config import ConfigManager
from agent_farm.lctx.targets import (
    KINDS,
    Kind,
    detect_kind,
    require_git_url,
    require_name,
    require_path,
    without_password,
)

Narrate = Callable[[str], None]


def _silent(text: str) -> None:
    """Nobody listens."""


@dataclass(frozen=True, slots=True)
class Source:
    """`path` is what is read: the user's own file or directory, or our clone. `url` is for git alone."""

    name: str
    kind: Kind
    path: Path
    url: str | None = None
    branch: str | None = None
    commit: str | None = None
    fault: str | None = None

    @property
    def problem(self) -> str | None:
        """None, or why it cannot be read now."""
        if self.fault:
            return self.fault
        fine = self.path.is_file() if self.kind == "file" else self.path.is_dir()
        if fine:
            return None
        if os.path.lexists(self.path):
            return f"{self.path} is no {'file' if self.kind == 'file' else 'directory'} any more"
        return (
            f"{self.path} does not exist any more" if self.kind != "git" else f"its clone {self.path} is gone"
        )

    def shown(self) -> dict[str, Any]:
        """As it is listed: without a password."""
        facts: dict[str, Any] = {"name": self.name, "type": self.kind, "path": str(self.path)}
        if self.url:
            facts["url"] = without_password(self.url)
        facts |= {key: value for key, value in (("branch", self.branch), ("commit", self.commit)) if value}
        return {**facts, "problem": self.problem}


class SourcesManager:
    def __init__(self, config: ConfigManager, *, narrate: Narrate = _silent) -> None:
        self.config = config
        self._narrate = narrate

    @property
    def clones(self) -> Path:
        return self.config.sources_directory / "git"

    def list(self) -> tuple[Source, ...]:
        """All of them, or DamagedFile for an entry that is none."""
        return tuple(self._source(name, entry) for name, entry in self.config.sources.items())

    def overview(self) -> tuple[Source, ...]:
        """All of them; an entry that is no source is listed with what is wrong with it."""
        return tuple(self._listed(name, entry) for name, entry in self.config.sources.items())

    def get(self, name: str) -> Source:
        """Raises NotFound with the names there are."""
        entries = self.config.sources
        if name not in entries:
            close = nearest(name, entries)
            raise NotFound(
                f"Source not found: {name}",
                why=(f"There are: {', '.join(entries)}" if entries else "No sources are configured")
                + (f"; did you mean {close}?" if close else ""),
                hint="af sources list" if entries else "af sources add NAME PATH|URL",
            )
        return self._source(name, entries[name])

    def require(self, names: Sequence[str]) -> tuple[Source, ...]:
        """The sources, each once and all readable now."""
        found = tuple(self.get(name) for name in dict.fromkeys(names))
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
        if kind != "git" and (branch or commit):
            raise UsageError("--branch and --commit are for git sources", why=f"{target} is a {kind}")
        if kind != "git":
            source = Source(name, kind, Path(require_path(target, kind)))
            self._record(source)
            return source
        source = Source(name, "git", self.clones / name, require_git_url(target), branch, commit)
        from agent_farm.lctx.clones import make_clone

        with make_clone(source, self._narrate):
            self._record(source)
        return source

    def remove(self, name: str) -> Path | None:
        """Forget it. The user's own files stay; a clone goes, unless it holds work: then where it is kept."""
        source = self._forget(name)
        if source.kind != "git":
            return None
        from agent_farm.lctx.clones import discard_clone

        return discard_clone(source)

    def update(self, name: str) -> Source:
        """Bring a git source to what its remote has now; a lost clone is made anew."""
        source = self.get(name)
        if source.kind != "git":
            raise UsageError(
                f"{name} is a {source.kind}: it is read where it lies", hint=f"af sources show {name}"
            )
        from agent_farm.lctx.clones import make_clone, update_clone

        if os.path.lexists(source.path):
            update_clone(source, self._narrate)
        else:
            with make_clone(source, self._narrate):
                pass
        return source

    def _record(self, source: Source) -> None:
        def change(entries: dict[str, Any]) -> None:
            self._require_free(source.name, entries)
            entries[source.name] = _entry(source)

        self.config.change_sources(change)

    def _forget(self, name: str) -> Source:
        source = self.get(name)
        self.config.change_sources(lambda entries: entries.pop(name, None))
        return source

    def _require_free(self, name: str, entries: Mapping[str, Any]) -> None:
        taken = next((known for known in entries if known.lower() == name.lower()), None)
        if taken is not None:
            raise UsageError(
                f"There is a source {taken} already",
                why=f"it is {without_password(str(self.get(taken).url or self.get(taken).path))}",
                hint=f"af sources remove {taken}",
            )

    def _listed(self, name: str, entry: Any) -> Source:
        try:
            return self._source(name, entry)
        except DamagedFile as error:
            return Source(name, "file", self.config.path, fault=error.why)

    def _source(self, name: str, entry: Any) -> Source:
        """An entry somebody wrote by hand is checked as one of ours would be."""
        try:
            require_name(name)
            return _source_from(name, entry, self.clones, self.config.sources_directory / "docs")
        except (AgentFarmError, ValueError) as error:
            raise DamagedFile(
                f"Source {name!r} in {self.config.path} cannot be used",
                why=str(error),
                hint=f"$EDITOR {self.config.path}",
            ) from error


def _entry(source: Source) -> dict[str, str]:
    if source.kind != "git":
        return {"type": source.kind, "path": str(source.path)}
    pinned = {"branch": source.branch, "commit": source.commit}
    return {"type": "git", "url": source.url or "", **{key: value for key, value in pinned.items() if value}}


def _source_from(name: str, entry: Any, clones: Path, documents: Path) -> Source:
    if isinstance(entry, dict) and entry.get("type") == "docs":  # a text that lctx has fetched
        return Source(name, "file", documents / name / "content.txt")
    if not isinstance(entry, dict) or entry.get("type") not in KINDS:
        raise ValueError(f"it needs a type: {', '.join(KINDS)}")
    kind: Kind = entry["type"]
    place = entry.get("url" if kind == "git" else "path")
    if not isinstance(place, str) or not place:
        raise ValueError(f"a {kind} source needs a {'url' if kind == 'git' else 'path'}")
    if kind == "git":
        return Source(
            name, kind, clones / name, require_git_url(place), entry.get("branch"), entry.get("commit")
        )
    path = Path(place).expanduser()
    if not path.is_absolute() or any(ord(char) < 32 for char in place):
        raise ValueError("its path must be absolute and without control characters")
    return Source(name, kind, path)
