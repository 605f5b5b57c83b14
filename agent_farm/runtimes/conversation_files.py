"""Finds the files of one conversation to move it to another machine, and places them where its CLI looks.

Names are relative to the CLI's configuration home. If a CLI files conversations by working directory, that
part of the name is replaced by a placeholder.
"""

from __future__ import annotations

import os
import re
import time
from collections.abc import Iterator, Mapping
from pathlib import Path

from agent_farm.disk import make_directory, read_plain, replace_file
from agent_farm.paths import is_below
from agent_farm.runtimes.cli import Cli, Environment

_ANY_DIRECTORY = "=cwd="
_SAFE = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.-]*")


def find_files(
    cli: Cli, id: str, *, private: Path, env: Environment, cwd: Path
) -> Iterator[tuple[str, Path]]:
    """Names and files; `private` is the directory with the private home of a start."""
    if not _SAFE.fullmatch(id):
        return
    for home in _homes(cli, private, env):
        for pattern in cli.talk:
            for path in sorted(home.glob(pattern.format(id=id, cwd=_filed_under(cwd)))):
                if path.is_file() and not path.is_symlink() and path.resolve().is_relative_to(home.resolve()):
                    parts = path.relative_to(home).parts
                    yield (
                        "/".join(_ANY_DIRECTORY if part == _filed_under(cwd) else part for part in parts),
                        path,
                    )


def lay_files(
    cli: Cli, id: str, files: Mapping[str, bytes], *, private: Path, env: Environment, cwd: Path
) -> None:
    """Write the files where its next start looks; a file that continues differently is kept beside them."""
    own, *others = _homes(cli, private, env)
    home = own if cli.home is None or cli.is_at_home(env) else others[0]
    for name, content in files.items():
        parts = [_filed_under(cwd) if part == _ANY_DIRECTORY else part for part in name.split("/")]
        path = home.joinpath(*parts)
        if not is_below(name) or not _is_expected(cli, id, name):
            continue
        make_directory(path.parent)
        if path.parent.resolve().is_relative_to(home.resolve()):
            _set_aside(path, content)
            replace_file(path, content)


def _set_aside(path: Path, content: bytes) -> None:
    """Keep the present file under a name that no CLI lists as a conversation."""
    try:
        goes_on = content.startswith(read_plain(path, limit=len(content)))
    except FileNotFoundError:
        return
    except OSError:  # it is longer, or no plain file
        goes_on = False
    if not goes_on:
        os.replace(path, path.with_name(f"{path.name}.before-{time.time_ns()}"))


def _homes(cli: Cli, private: Path, env: Environment) -> list[Path]:
    homes = [private / cli.binary]
    if cli.home is not None and cli.own_home:
        user = Path(env.get("HOME", "/"))
        homes.append(Path(env.get(cli.home.variable) or user / cli.own_home))
    return homes


def _is_expected(cli: Cli, id: str, name: str) -> bool:
    """A machine may only send files that this conversation of this CLI can have."""
    for pattern in cli.talk if _SAFE.fullmatch(id) else ():
        words = pattern.format(id=id, cwd=_ANY_DIRECTORY).split("/")
        if len(words) == len(name.split("/")) and all(
            re.fullmatch(re.escape(word).replace(r"\*", "[^/]*"), part)
            for word, part in zip(words, name.split("/"), strict=True)
        ):
            return True
    return False


def _filed_under(cwd: Path) -> str:
    """The name that Claude Code makes of a directory."""
    return re.sub(r"[^A-Za-z0-9]", "-", str(cwd))
