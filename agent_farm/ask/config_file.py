"""`config.json`: one user's agents, sources and groups of sources.

A missing file means the shipped agents and no sources. A file in lctx's own form is read, and written back
in that form. Keys that this version does not know are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from pathlib import Path
from typing import Annotated, Any

import msgspec

from agent_farm.ask.agents import DEFAULT_AGENT, Agent, agent_from, shipped_agents
from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import DamagedFile, NotFound, there_are
from agent_farm.inside import NotReadable, read_plain

_LOCK_SECONDS = 20.0


class _Group(msgspec.Struct):
    sources: tuple[str, ...]


class _Document(msgspec.Struct, frozen=True):
    """`sources` is an object, or lctx's list of entries with names."""

    default_agent: Annotated[str, msgspec.Meta(min_length=1)] = msgspec.field(
        default=DEFAULT_AGENT, name="defaultAgent"
    )
    agents: dict[str, Any] = {}
    sources: dict[str, Any] | list[dict[str, Any]] = {}
    groups: dict[str, _Group] = {}
    clones: str = msgspec.field(default="", name="sourcesDirectory")


def config_directory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".config"
    return root / "lctx"


class ConfigManager:
    """Reads the file again only when it has changed, so that processes see each other's changes."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else config_directory() / "config.json"
        self._read: tuple[object, dict[str, Any], _Document] | None = None

    @property
    def directory(self) -> Path:
        return self.path.parent

    @property
    def default_agent(self) -> str:
        return self._document.default_agent

    def agent_for(self, runtime: str | None) -> str:
        """The user's default agent; without one, that of the farm's runtime, or the shipped default."""
        default = self.default_agent
        return runtime if runtime and default == DEFAULT_AGENT and runtime in shipped_agents() else default

    def agent(self, name: str | None = None) -> Agent:
        """The agent of that name, or the default one; an entry of the file replaces a whole shipped agent."""
        wanted = name or self.default_agent
        if not self.is_shipped(wanted):
            return self._agent(wanted)
        shipped = shipped_agents()
        if wanted in shipped:
            return shipped[wanted]
        raise NotFound(
            f"No agent {wanted}",
            why=there_are(wanted, self.agent_names),
            hint="af ask --help" if name else f'set "defaultAgent" in {self.path}',
        )

    @property
    def agent_names(self) -> list[str]:
        """Shipped agents come first."""
        return list(dict.fromkeys([*shipped_agents(), *self._document.agents]))

    def is_shipped(self, name: str) -> bool:
        return name not in self._document.agents

    @property
    def sources_directory(self) -> Path:
        """Where clones are kept; lctx lets its user choose."""
        given = self._document.clones
        return Path(given).expanduser() if given else self.directory / "sources"

    @property
    def sources(self) -> Mapping[str, Any]:
        return _by_name(self._document.sources)

    @property
    def groups(self) -> Mapping[str, tuple[str, ...]]:
        """Names that stand for several sources."""
        return {name: group.sources for name, group in self._document.groups.items()}

    def change_sources(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Apply `change` to the sources under the file's lock; nothing is written if it raises."""
        make_directory(self.directory)
        with self.lock():
            sources = dict(self.sources)
            change(sources)
            found: object = sources
            if isinstance(self._document.sources, list):
                found = [{"name": name, **entry} for name, entry in sources.items()]
            written = {"defaultAgent": DEFAULT_AGENT, "agents": {}, **self._raw, "sources": found}
            text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
            # a config.json that links into somebody's dotfiles stays a link
            replace_file(self.path.resolve(), text.encode("utf-8", "surrogateescape"))

    def lock(self) -> AbstractContextManager[int]:
        return file_lock(self.directory / ".lock", wait=_LOCK_SECONDS)

    @property
    def _raw(self) -> dict[str, Any]:
        return self._load()[0]

    @property
    def _document(self) -> _Document:
        return self._load()[1]

    def _load(self) -> tuple[dict[str, Any], _Document]:
        try:
            facts = self.path.stat()
            stamp = (facts.st_ino, facts.st_mtime_ns, facts.st_size)
        except OSError:
            stamp = None
        if self._read is None or stamp is None or self._read[0] != stamp:
            raw = self._parse()
            try:
                self._read = (stamp, raw, msgspec.convert(raw, _Document))
            except msgspec.ValidationError as error:
                raise self._damaged(str(error)) from error
        return self._read[1:]

    def _parse(self) -> Any:
        try:
            return json.loads(read_plain(self.path))  # the user's own file, which may be a link
        except FileNotFoundError:
            return {}
        except NotReadable as error:
            raise self._damaged(error.why or "it cannot be read") from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(str(error)) from error

    def _agent(self, name: str) -> Agent:
        try:
            return agent_from(name, self._document.agents[name])
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _damaged(self, why: str) -> DamagedFile:
        return DamagedFile(
            f"{self.path} cannot be used", why=f"{why}; nothing was changed", hint=f"$EDITOR {self.path}"
        )


def _by_name(sources: dict[str, Any] | list[dict[str, Any]]) -> dict[str, Any]:
    if isinstance(sources, dict):
        return sources
    named = [entry for entry in sources if isinstance(entry.get("name"), str)]
    return {entry["name"]: {key: value for key, value in entry.items() if key != "name"} for entry in named}
