"""The throw-away directory with its sources, and what a command template may say about it."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_farm.errors import UsageError
from agent_farm.lctx.argv import Placeholders
from agent_farm.lctx.directory import copy_file, link_sources, throwaway_directory, write_empty_configs
from agent_farm.lctx.sources import Source
from agent_farm.lctx.template import list_of


@dataclass(frozen=True, slots=True)
class Room:
    """The directory of one run with its sources; `readable` is where each is best read from."""

    directory: Path
    sources: tuple[Source, ...]
    readable: Mapping[str, Path]

    @property
    def prompt_file(self) -> Path:
        return self.directory / "prompt.md"

    def sources_list(self) -> str:
        return list_of((source.name, source.kind != "file") for source in self.sources)

    def source_paths(self) -> str:
        """Where each is best read from: tools that search do not follow links."""
        return "\n".join(f"- {source.name}: {self.readable[source.name]}" for source in self.sources)

    def placeholders(self, env: Mapping[str, str]) -> Placeholders:
        directories = tuple(str(self.readable[item.name]) for item in self.sources if item.kind != "file")
        return Placeholders(
            values={
                "prompt_file": lambda: str(self._required_prompt()),
                "prompt": lambda: self._required_prompt().read_bytes().decode("utf-8", "surrogateescape"),
                "mcp_config": lambda: str(self.directory / ".mcp.json"),
                "mcp_config_file": lambda: str(self._no_servers()),
                "directory": lambda: str(self.directory),
                "working_dir": lambda: str(self.directory),
                "scratch": self._scratch,
                "codex_mcp_off": lambda: _codex_servers_off(env),
                "opencode_config": lambda: _opencode_overlay(env, directories),
            },
            lists={
                "source_dirs": tuple(os.path.realpath(source.path) for source in self.sources),
                "directories": directories,
            },
        )

    def _required_prompt(self) -> Path:
        if not self.prompt_file.exists():
            raise UsageError("A chat command cannot name the prompt", why="there is no prompt in a chat")
        return self.prompt_file

    def _no_servers(self) -> Path:
        """For a CLI that refuses a file without the key."""
        file = Path(self._scratch()) / "no-servers.json"
        file.write_text('{"mcpServers": {}}\n')
        return file

    def _scratch(self) -> str:
        path = self.directory / ".scratch"
        path.mkdir(mode=0o700, exist_ok=True)
        return str(path)


@contextmanager
def prepared_room(sources: tuple[Source, ...], tmp: Path) -> Iterator[Room]:
    """The directory with everything but the prompt in it; gone on every way out."""
    with throwaway_directory(tmp) as directory:
        write_empty_configs(directory)
        link_sources(directory, sources)
        readable = {
            source.name: copy_file(directory, source)
            if source.kind == "file"
            else Path(os.path.realpath(source.path))
            for source in sources
        }
        yield Room(directory, sources, readable)


def _codex_servers_off(env: Mapping[str, str]) -> str:
    from agent_farm.runtimes.codex_lock import servers_off

    return servers_off(env)


def _opencode_overlay(env: Mapping[str, str], directories: Sequence[str]) -> str:
    from agent_farm.runtimes.opencode_config import overlay

    return overlay(env, directories)
