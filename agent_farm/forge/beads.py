"""Issues of beads, through `bd`: read, claimed at spawn, closed when the work has landed."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path

from agent_farm.builders.check_list import MOST_ITEMS, Item
from agent_farm.errors import ToolMissing, UsageError
from agent_farm.forge.forge_cli import ForgeError, run_to_its_end, words_of
from agent_farm.forge.issues import plain_text

PLACE = ".beads"
_TOLD = ("description", "design", "acceptance_criteria")
_SECONDS = 30.0
_MOST_BYTES = 8_000_000
_ID = re.compile(r"[A-Za-z][A-Za-z0-9_]*-[A-Za-z0-9.-]{1,40}")


def bead(root: Path, id: str) -> Item:
    """One that is closed counts as done; one that somebody is at does not."""
    found = _rows(_ask(root, "show", _checked(id), "--json"))
    if not found:
        raise ForgeError(f"bd knows no {id}", hint="bd ready")
    return found[0]


def ready_beads(root: Path) -> list[Item]:
    """Those that nothing blocks, by bd's own word."""
    return _rows(_ask(root, "ready", "--json"))


def claim(root: Path, id: str) -> None:
    """Refused by bd itself where somebody else was faster."""
    _ask(root, "update", _checked(id), "--claim")


def give_back(root: Path, id: str) -> None:
    _ask(root, "update", _checked(id), "--status", "open")


def close(root: Path, id: str, builder: str) -> None:
    _ask(root, "close", _checked(id), "--reason", f"Landed by builder {builder}")


def _checked(id: str) -> str:
    if not _ID.fullmatch(id):
        raise UsageError(f"{id!r:.80} is no issue of beads", hint="bd ready")
    return id


def _ask(root: Path, *args: str) -> str:
    program = shutil.which("bd")
    if program is None:
        raise ToolMissing("bd is not installed", why="Issues of beads are read through it.")
    try:
        done = run_to_its_end([program, *args], root, seconds=_SECONDS)
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ForgeError(f"bd {args[0]} did not end well", why=str(error)) from None
    if done.returncode or len(done.stdout) > _MOST_BYTES:
        said = " ".join(done.stderr.decode("utf-8", "replace").split())[:400]
        raise ForgeError(f"bd {args[0]} failed", why=said or None)
    return done.stdout.decode("utf-8", "replace")


def _rows(output: str) -> list[Item]:
    """An object or a list of them, as bd's versions have it."""
    try:
        answer = json.loads(output)
    except (ValueError, RecursionError) as error:
        raise ForgeError("What bd printed is not JSON", why=str(error)) from None
    rows = answer if isinstance(answer, list) else [answer]
    found = []
    for row in rows[:MOST_ITEMS]:
        id, title = words_of(row, "id"), plain_text(words_of(row, "title"))
        if _ID.fullmatch(id) and title:
            parts = [plain_text(words_of(row, name)) for name in _TOLD]
            text = "\n\n".join([" ".join(title.split()), *filter(None, parts)])
            found.append(Item(id, text, words_of(row, "status") == "closed"))
    return found
