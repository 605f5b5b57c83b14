"""Finds in a prompt what the demo agent should do.

Directives are `[[word]]` or `[[word:value]]`, carried out in order. In plain words, it understands lines for
a file: "Write three lines about git worktrees into worktrees.md", "Add a fourth line".
"""

from __future__ import annotations

import re
from typing import NamedTuple

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
_NUMBERS = ("one", "two", "three", "four", "five", "six", "seven", "eight", "nine", "ten")
_ORDINALS = r"first|second|third|fourth|fifth|sixth|seventh|eighth|ninth|tenth|more|further|last"
_LINES = re.compile(
    rf"\b(?:write|add|append|put)\s+(\d{{1,3}}|an?|another|{'|'.join(_NUMBERS)})\s+(?:(?:{_ORDINALS})\s+)?"
    r"lines?\b([^\n]*)",
    re.IGNORECASE,
)
_FILE = re.compile(r"\s(?:into|in|to)\s+`?([\w./-]*\w\.\w+)")
_TOPIC = re.compile(r"\s+about\s+([^.!?;:]{1,80})")
_SPEC = re.compile(r"\bspecified in (\S+\.md)\b")


class Directive(NamedTuple):
    word: str
    value: str


class LinesWanted(NamedTuple):
    """Without `file`, it means the file written last; without `topic`, the topic of that file's last line."""

    number: int
    topic: str | None
    file: str | None


def find_directives(text: str) -> tuple[Directive, ...]:
    return tuple(
        Directive(found[1], found[2] or "") for found in _DIRECTIVE.finditer(text) if found[1] in WORDS
    )


def find_lines_wanted(text: str) -> LinesWanted | None:
    found = _LINES.search(text)
    if found is None:
        return None
    number, rest = found[1].lower(), found[2]
    file = _FILE.search(rest)
    topic = _TOPIC.match(rest[: file.start()] if file else rest)
    count = int(number) if number.isdigit() else 1 + _NUMBERS.index(number) if number in _NUMBERS else 1
    return LinesWanted(count, topic[1].strip() if topic else None, file[1] if file else None)


def find_spec(text: str) -> str | None:
    """The file that contains the rest of the task."""
    found = _SPEC.search(text)
    return found[1] if found else None
