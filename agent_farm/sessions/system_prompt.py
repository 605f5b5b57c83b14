"""A session's system prompt: the butler's CLAUDE.md, its includes, the shared snippets, then memory."""

from __future__ import annotations

import re
from pathlib import Path

from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.inside import read_plain

INCLUDE = re.compile(r"<!--\s*@include\s+(\S+)\s*-->")
SHARED_SNIPPETS = ("shared/BUTLER_SKILLS.md", "shared/MCP_LOGGING.md")


class IncludeError(AgentFarmError):
    code = "include"


def compose_system_prompt(text: str, roster: Path, memory: str | None = None) -> str:
    """`text` with every `<!-- @include PATH -->` replaced; PATH is relative to `roster` and stays inside."""
    shared = [
        resolve_includes(_read(roster, name, "the roster"), roster, (name,))
        for name in SHARED_SNIPPETS
        if (roster / name).is_file()
    ]
    parts = [resolve_includes(text, roster), *shared, memory or ""]
    return "\n\n".join(part.strip("\n") for part in parts if part.strip())


def resolve_includes(text: str, roster: Path, trail: tuple[str, ...] = ()) -> str:
    def replacement(match: re.Match[str]) -> str:
        name = match.group(1)
        if name in trail:
            raise IncludeError(f"@include {name} includes itself", why=" -> ".join((*trail, name)))
        content = _read(roster, name, trail[-1] if trail else "CLAUDE.md")
        return resolve_includes(content, roster, (*trail, name)).strip("\n")

    return INCLUDE.sub(replacement, text)


def _read(roster: Path, name: str, where: str) -> str:
    path = (roster / name).resolve()
    if not path.is_relative_to(roster.resolve()):
        raise IncludeError(f"@include {name} in {where} leaves the roster", why=f"The roster is {roster}.")
    try:
        return read_plain(path).decode()
    except FileNotFoundError:
        raise NotFound(
            f"@include {name} in {where} does not exist", why=f"Looked for {roster / name}."
        ) from None
    except (OSError, UnicodeDecodeError) as error:
        raise IncludeError(f"@include {name} in {where} cannot be read", why=str(error)) from error
