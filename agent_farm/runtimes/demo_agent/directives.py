"""What a prompt tells the demo agent to do: `[[word]]` or `[[word:value]]`, in the order they stand."""

from __future__ import annotations

import re
from dataclasses import dataclass

WORDS = {
    "sleep": "work for that many seconds",
    "ask": "ask this and wait for 1 (yes) or 2 (no); needs a person",
    "say": "answer with this text",
    "write": "write this file, relative to the working directory, and commit it",
    "read": "read this file, from where it may",
    "nocommit": "leave what was written uncommitted",
    "commit": "headless: commit what was written",
    "mcp": "call this MCP tool: `[[mcp:TOOL {json arguments}]]`",
    "env": "say whether this environment variable is visible",
    "turns": "take that many further turns",
    "child": "start two child processes that live that many seconds, one of them in a session of its own",
    "error": "end the turn with an API error of this text",
    "exit": "end the process with this exit code",
    "crash": "die by SIGKILL",
}

_DIRECTIVE = re.compile(r"\[\[(\w+)(?::((?:(?!\]\]).)*))?\]\]", re.DOTALL)


@dataclass(frozen=True, slots=True)
class Directive:
    word: str
    value: str


def find_directives(text: str) -> tuple[Directive, ...]:
    return tuple(
        Directive(found[1], found[2] or "") for found in _DIRECTIVE.finditer(text) if found[1] in WORDS
    )
