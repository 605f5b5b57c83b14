"""Issues of beads, through `bd`: read, claimed at spawn, closed when the work has landed."""

from __future__ import annotations

import re
import shutil
from collections.abc import Mapping
from pathlib import Path

from agent_farm.builders.check_list import MOST_ITEMS, Item
from agent_farm.errors import ToolMissing, UsageError
from agent_farm.forge.forge_cli import ForgeCli, ForgeError, words_of
from agent_farm.forge.issues import plain_text
from agent_farm.launch import as_command

PLACE = ".beads"
_TOLD = ("description", "design", "acceptance_criteria")
_ID = re.compile(r"[A-Za-z0-9][A-Za-z0-9_.-]{0,60}-[A-Za-z0-9.]{1,40}")
_FREE = ("--status", "open", "--assignee", "")


def bead(root: Path, id: str) -> Item:
    """A closed issue counts as done; one that somebody is working on does not."""
    found = _items(_bd(root, id).ask("show", id, "--json", what=f"read {id}"))
    if not found:
        raise ForgeError(f"bd knows no {id}", hint="bd ready")
    return found[0]


def ready_beads(root: Path) -> list[Item]:
    """Issues that bd reports as ready and nobody is working on: some versions list the latter too."""
    many = ("ready", "--limit", str(MOST_ITEMS), "--json")
    return _items(_bd(root).ask(*many, what="list what is ready"), state="open")


def claim(root: Path, id: str) -> None:
    """Refused if somebody else was faster: bd then prints no issue, and some versions still exit with 0."""
    if not _bd(root, id).run("update", id, "--claim", "--json", what=f"claim {id}").strip():
        raise ForgeError(
            f"{id} is already claimed",
            why="bd show names who has it; an issue that nobody works on any more can be given back.",
            hint=giving_back(id),
        )


def give_back(root: Path, id: str) -> None:
    _bd(root, id).run("update", id, *_FREE, what=f"give {id} back")


def giving_back(id: str) -> str:
    return as_command("bd", "update", id, *_FREE)


def close(root: Path, id: str, builder: str) -> None:
    why = f"Landed by builder {builder}"
    _bd(root, id).run("close", id, "--reason", why, what=f"close {id}")


def _bd(root: Path, id: str | None = None) -> ForgeCli:
    """`bd`, to be asked about the issue of that id if there is one."""
    if id is not None and not _ID.fullmatch(id):
        raise UsageError(f"{id!r:.80} is not an issue of beads", hint="bd ready")
    program = shutil.which("bd")
    if program is None:
        raise ToolMissing("bd is not installed", why="Issues of beads are read through it.")
    return ForgeCli("bd", program, root)


def _items(answer: object, *, state: str | None = None) -> list[Item]:
    """Versions of bd answer with an object or a list of them, bare or beside a format version."""
    if isinstance(answer, Mapping) and "data" in answer:
        answer = answer["data"]
    rows = answer if isinstance(answer, list) else [answer]
    found = []
    for row in rows[:MOST_ITEMS]:
        id, title, status = words_of(row, "id"), plain_text(words_of(row, "title")), words_of(row, "status")
        if _ID.fullmatch(id) and title and state in (None, status):
            parts = [plain_text(words_of(row, name)) for name in _TOLD]
            text = "\n\n".join([" ".join(title.split()), *filter(None, parts)])
            found.append(Item(id, text, status == "closed"))
    return found
