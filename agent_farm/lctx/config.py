"""`config.json`: the agents and the sources of one user.

A missing file means the shipped agents and no sources. Keys this version does not know are kept.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from agent_farm.disk import file_lock, make_directory, replace_file
from agent_farm.errors import DamagedFile, NotFound, nearest
from agent_farm.inside import NotReadable, read_plain
from agent_farm.lctx.agents import Agent, agent_from
from agent_farm.lctx.ancestor import agent_as_ours, sources_as_found, sources_as_mapping
from agent_farm.lctx.shipped import DEFAULT_AGENT, SHIPPED

_LOCK_SECONDS = 20.0


def config_directory() -> Path:
    base = os.environ.get("XDG_CONFIG_HOME")
    root = Path(base) if base and os.path.isabs(base) else Path.home() / ".config"
    return root / "lctx"


class ConfigManager:
    """Reads the file anew for each question, so that two processes see each other's changes."""

    def __init__(self, path: Path | str | None = None) -> None:
        self.path = Path(path) if path is not None else config_directory() / "config.json"

    @property
    def directory(self) -> Path:
        return self.path.parent

    @property
    def default_agent(self) -> str:
        name = self.load().get("defaultAgent", DEFAULT_AGENT)
        if not isinstance(name, str) or not name:
            raise self._damaged("defaultAgent must be a name")
        return name

    def agent_for(self, runtime: str | None) -> str:
        """The default agent, unless it is the shipped one and the farm's runtime is another."""
        default = self.default_agent
        return runtime if runtime in SHIPPED and runtime and default == DEFAULT_AGENT else default

    @property
    def agents(self) -> dict[str, Agent]:
        """The shipped agents; an entry of the file replaces the shipped one of its name whole."""
        return {name: self._agent(name, entry) for name, entry in self._entries().items()}

    def agent(self, name: str | None = None) -> Agent:
        """The agent of that name, or the default one."""
        wanted = name or self.default_agent
        entries = self._entries()
        if wanted not in entries:
            raise NotFound(
                f"No agent {wanted}",
                why=f"There are: {', '.join(entries)}"
                + (f"; did you mean {close}?" if (close := nearest(wanted, entries)) else ""),
                hint="af ask --help" if name else f'set "defaultAgent" in {self.path}',
            )
        return self._agent(wanted, entries[wanted])

    def is_shipped(self, name: str) -> bool:
        return name not in self._section("agents")

    @property
    def sources_directory(self) -> Path:
        """Where clones lie; lctx lets its user choose."""
        given = self.load().get("sourcesDirectory")
        return Path(given).expanduser() if isinstance(given, str) and given else self.directory / "sources"

    @property
    def sources(self) -> Mapping[str, Any]:
        return self._section("sources")

    def change_sources(self, change: Callable[[dict[str, Any]], None]) -> None:
        """Apply `change` to the sources under the file's lock; nothing is written when it raises."""
        make_directory(self.directory)
        with self.lock():
            document = self.load()
            sources = dict(self._section("sources", document))
            change(sources)
            found = sources_as_found(document.get("sources"), sources)
            written = {"defaultAgent": DEFAULT_AGENT, "agents": {}, **document, "sources": found}
            text = json.dumps(written, indent=2, ensure_ascii=False) + "\n"
            replace_file(self._real_path(), text.encode("utf-8", "surrogateescape"))

    def lock(self) -> Any:
        return file_lock(self.directory / ".lock", wait=_LOCK_SECONDS)

    def load(self) -> dict[str, Any]:
        try:
            document = json.loads(read_plain(self.path))  # the user's own, who may have linked it
        except FileNotFoundError:
            return {}
        except NotReadable as error:
            raise self._damaged(error.why or "it cannot be read") from error
        except (ValueError, RecursionError) as error:
            raise self._damaged(str(error)) from error
        if not isinstance(document, dict):
            raise self._damaged("it must hold an object")
        return document

    def _entries(self) -> dict[str, Any]:
        return {**SHIPPED, **self._section("agents")}

    def _section(self, key: str, document: Mapping[str, Any] | None = None) -> Mapping[str, Any]:
        section = sources_as_mapping((self.load() if document is None else document).get(key, {}))
        if not isinstance(section, dict):
            raise self._damaged(f"{key} must be an object")
        return section

    def _agent(self, name: str, entry: Any) -> Agent:
        try:
            return agent_from(name, agent_as_ours(entry))
        except ValueError as error:
            raise self._damaged(str(error)) from error

    def _real_path(self) -> Path:
        """A config.json that is a link into somebody's dotfiles stays one."""
        return self.path.resolve() if self.path.is_symlink() else self.path

    def _damaged(self, why: str) -> DamagedFile:
        return DamagedFile(
            f"{self.path} cannot be used", why=f"{why}; nothing was changed", hint=f"$EDITOR {self.path}"
        )
