"""What a worktree gets that git does not bring: copied and linked files, submodules, the setup command."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import Struct

from agent_farm.consent import ConsentRequest
from agent_farm.farm.farm import Farm
from agent_farm.git.ignoring import exclude, ignored_files

if TYPE_CHECKING:
    from agent_farm.pane.launchfile import Copy

_SUBMODULES = "git submodule update --init --recursive"
# Not compiled at start: few spawns need them.
_PATTERN = r"[\\*?\[\]!#]"
_MEANS_SOMETHING = r"([\\*?\[\]! #])"


class Preparation(Struct, frozen=True):
    """Names are relative to the checkout at `source`; a directory's ends in a slash.

    `notes` name settings that match nothing.
    """

    source: Path
    copies: tuple[str, ...]
    links: tuple[str, ...]
    carried: tuple[str, ...]
    setup: str | None
    notes: tuple[str, ...] = ()

    def files(self, worktree: Path) -> list[Copy]:
        """Without carried output: `carried_output.py` knows how much of that fits."""
        if not (self.copies or self.links):
            return []
        from agent_farm.pane.launchfile import Copy

        copied = [Copy(self.source / name, worktree / name) for name in self.copies]
        return [*copied, *(Copy(self.source / name, worktree / name, "link") for name in self.links)]


def preparation_of(farm: Farm, include: Sequence[ConsentRequest]) -> Preparation:
    """`include` are the files that name further copies. What is linked is not copied."""
    patterns = [*farm.settings.items("worktree.copy")]
    for request in include:
        patterns += request.content.splitlines()
    wished = {key: farm.settings.items(key) for key in ("worktree.link", "worktree.carry")}
    links = _ignored(farm, wished["worktree.link"])
    shared = tuple(name for name in links if name.endswith("/"))
    copies = tuple(
        name for name in _ignored(farm, patterns) if name not in links and not name.startswith(shared)
    )
    output = _output(farm, wished["worktree.carry"])
    carried = tuple(name for name in output if name not in links and not name.startswith(shared))
    there = {"worktree.link": links, "worktree.carry": output}
    notes = tuple(note for key, names in there.items() for note in _nothing(key, wished[key], names))
    return Preparation(farm.repository.checkout, copies, links, carried, setup_command(farm), notes)


def _nothing(key: str, wished: Sequence[str], there: Sequence[str]) -> Iterator[str]:
    """Only about plain paths: a pattern may well be for something that does not exist yet."""
    found = [f"/{name.rstrip('/')}/" for name in there]
    for name in wished:
        plain = name.strip().strip("/")
        if plain and not re.search(_PATTERN, plain) and not any(f"/{plain}/" in one for one in found):
            yield f"{key}: git does not ignore {name!r} here, so it brings nothing"


def hide_links(farm: Farm, preparation: Preparation) -> None:
    """Exclude links from git, which takes them for files: `node_modules/` in .gitignore does not match."""
    names = (re.sub(_MEANS_SOMETHING, r"\\\1", name.rstrip("/")) for name in preparation.links)
    exclude(farm.repository, [f"/{name}" for name in names if "\n" not in name])


def setup_command(farm: Farm) -> str | None:
    setup = farm.settings.text("worktree.setup")
    if not farm.settings.flag("worktree.submodules"):
        return setup
    return f"{_SUBMODULES} || exit\n{setup}" if setup else _SUBMODULES


def _output(farm: Farm, patterns: Sequence[str]) -> tuple[str, ...]:
    if not patterns:
        return ()
    from agent_farm.farm.carried_output import declared_output

    return declared_output(farm, patterns)


def _ignored(farm: Farm, patterns: Sequence[str]) -> tuple[str, ...]:
    return tuple(ignored_files(farm.repository.persons_checkout(), patterns)) if patterns else ()
