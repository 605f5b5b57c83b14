"""The throw-away directory that an agent sees, with its sources, and the placeholders of its command."""

from __future__ import annotations

import os
import re
import shutil
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from agent_farm.ask.agents import answering_clis, cli_of
from agent_farm.ask.sources_manager import Source
from agent_farm.ask.throwaway import throwaway_directory
from agent_farm.errors import NotFound, UsageError

COPIES = "lctx-files"
COPY_LIMIT = 16 << 20


@dataclass(frozen=True, slots=True)
class Placeholders:
    """`values` are computed when they occur; a word with one of `lists` in it becomes one word per item."""

    values: Mapping[str, Callable[[], str]]
    lists: Mapping[str, tuple[str, ...]]

    def argv(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(filled for word in words for filled in self._words(word))

    def text(self, word: str) -> str:
        """`word` filled in where there is room for one value: a list is joined by commas."""
        return self._fill(word, {name: ",".join(items) for name, items in self.lists.items()})

    def _words(self, word: str) -> Iterable[str]:
        listed = [name for name in self.lists if f"{{{name}}}" in word]
        if not listed:
            return [self._fill(word, {})]
        if len(listed) > 1:
            raise UsageError(f"The word {word!r} of the command names two lists", why=", ".join(listed))
        return [self._fill(word, {listed[0]: item}) for item in self.lists[listed[0]]]

    def _fill(self, word: str, items: Mapping[str, str]) -> str:
        """Unknown placeholders stay, and what is filled in is not expanded again."""
        known = "|".join(map(re.escape, {**self.values, **items}))

        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            return items[name] if name in items else self.values[name]()

        return re.sub(rf"\{{({known})\}}", value, word)


@dataclass(frozen=True, slots=True)
class AskDirectory:
    """The directory of one run with its sources; `readable` is the best path to read each source from."""

    path: Path
    sources: tuple[Source, ...]
    readable: Mapping[str, Path]

    @property
    def prompt_file(self) -> Path:
        return self.path / "prompt.md"

    def sources_list(self) -> str:
        """`- ./name/` for a directory, `- ./name` for a file."""
        return "\n".join(
            f"- ./{source.name}{'' if source.kind == 'file' else '/'}" for source in self.sources
        )

    def source_paths(self) -> str:
        """The best path to read each source from: tools that search do not follow links."""
        return "\n".join(f"- {source.name}: {self.readable[source.name]}" for source in self.sources)

    def placeholders(self, program: str, env: Mapping[str, str]) -> Placeholders:
        """The placeholders of every agent, and those that the description of `program` adds."""
        directories = tuple(str(self.readable[item.name]) for item in self.sources if item.kind != "file")
        found = cli_of(program)
        own = found[1].placeholders if found else {}
        return Placeholders(
            values={
                "prompt_file": lambda: str(self._required_prompt()),
                "prompt": lambda: self._required_prompt().read_bytes().decode("utf-8", "surrogateescape"),
                "mcp_config": lambda: str(self.path / ".mcp.json"),
                "mcp_config_file": lambda: str(self._no_servers()),
                "directory": lambda: str(self.path),
                "working_dir": lambda: str(self.path),
                "scratch": lambda: str(self._scratch()),
                **{name: lambda make=make: make(env, directories) for name, make in own.items()},  # type: ignore[misc]
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
        """For a CLI that refuses a file without this key."""
        file = self._scratch() / "no-servers.json"
        file.write_text('{"mcpServers": {}}\n')
        return file

    def _scratch(self) -> Path:
        path = self.path / ".scratch"
        path.mkdir(mode=0o700, exist_ok=True)
        return path


@contextmanager
def ask_directory(sources: tuple[Source, ...], tmp: Path) -> Iterator[AskDirectory]:
    """The directory with everything in it but the prompt; it is always removed at the end."""
    with throwaway_directory(tmp) as path:
        for name, content in _configurations():
            (path / name).parent.mkdir(mode=0o700, exist_ok=True)
            (path / name).write_text(content + "\n")
        for source in sources:
            (path / source.name).symlink_to(source.path, target_is_directory=source.kind != "file")
        yield AskDirectory(path, sources, {source.name: _readable(path, source) for source in sources})


def _configurations() -> Iterator[tuple[str, str]]:
    """For all CLIs, since an agent of the user's own may start any of them."""
    yield from (file for _, ask in answering_clis() for file in ask.files.items())


def _readable(directory: Path, source: Source) -> Path:
    """A file is copied to where every CLI may read it: some follow no links out of their directory."""
    if source.kind != "file":
        return Path(os.path.realpath(source.path))
    target = directory / COPIES / source.name / source.path.name
    try:
        if source.path.stat().st_size > COPY_LIMIT:
            return source.path
        target.parent.mkdir(mode=0o700, parents=True)
        shutil.copyfile(source.path, target)
    except OSError as error:
        raise NotFound(
            f"Source {source.name} cannot be read", why=f"{error.strerror}: {source.path}"
        ) from error
    return target
