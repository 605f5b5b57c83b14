"""A TOML text with one key set or removed, and every other byte unchanged.

This reads lines, not TOML: its result is used only if a TOML parser reads it as what was meant.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

_NAME = r"""(?:[A-Za-z0-9_-]+|"(?:[^"\\]|\\.)*"|'[^']*')"""
_PATH = rf"{_NAME}(?:[ \t]*\.[ \t]*{_NAME})*"
_HEADER = re.compile(rf"[ \t]*\[[ \t]*({_PATH})[ \t]*\][ \t]*(?:#.*)?")
_ANY_HEADER = re.compile(r"[ \t]*\[")
_PAIR = re.compile(rf"([ \t]*({_PATH})[ \t]*=[ \t]*)(.*)", re.DOTALL)
_NOT_SET = "# not set"  # what a starter file says about a key without a default

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class _Entry:
    """`key = value` on the lines from `start` to `end`, below the header `table`."""

    path: Path
    table: Path
    start: int
    end: int


def with_value(text: str, path: Sequence[str], value: Any) -> str:
    """Replaces the key's value, or uncomments its commented line, or adds a line to its table."""
    lines, wanted = text.split("\n"), tuple(path)
    line_end = "\r" if lines[0].endswith("\r") else ""
    if lines[-1]:  # the last line has no line end, and gets none
        return with_value(f"{text}{line_end}\n", path, value).removesuffix(f"{line_end}\n")
    entries, headers = _scan(lines)
    for entry in entries:
        if entry.path == wanted:
            lines[entry.start : entry.end] = _with_new_value(lines[entry.start : entry.end], value)
            return "\n".join(lines)
    table = wanted[:-1]
    begin, end = _section(lines, headers, table)
    beside = [entry for entry in entries if entry.path[:-1] == table]
    if begin is None and not beside and (header := _find_commented_header(lines, table)) is not None:
        lines[header] = _uncommented(lines[header])
        begin, end = header + 1, len(lines)
    commented = _find_commented(lines, begin, end, wanted[-1])
    if commented is not None:
        lines[commented : commented + 1] = _with_new_value([_uncommented(lines[commented])], value)
        return "\n".join(lines)
    if beside:
        last = beside[-1]
        indent = re.match(r"[ \t]*", lines[last.start])
        name = _joined(wanted[len(last.table) :])
        new = f"{indent[0] if indent else ''}{name} = {_toml(value)}{line_end}"
        return "\n".join([*lines[: last.end], new, *lines[last.end :]])
    new = f"{_joined(wanted[-1:])} = {_toml(value)}{line_end}"
    if begin is not None:
        return "\n".join([*lines[:begin], new, *lines[begin:]])
    gap = f"{line_end}\n" if text else ""
    return f"{text}{gap}[{_joined(table)}]{line_end}\n{new}\n"


def without_value(text: str, path: Sequence[str], *, explanation: str, commented: str) -> str:
    """Removes the key; below its `explanation` in a starter file, its `commented` line stays."""
    lines, wanted = text.split("\n"), tuple(path)
    entries, _ = _scan(lines)
    for entry in entries:
        if entry.path == wanted:
            above = lines[entry.start - 1] if entry.start else ""
            line_end = "\r" if lines[entry.start].endswith("\r") else ""
            is_starter = above.startswith(f"# {explanation}")
            lines[entry.start : entry.end] = [commented + line_end] if is_starter else []
            return "\n".join(_without_empty_section(lines, entry.table))
    return text


def _without_empty_section(lines: list[str], table: Path) -> list[str]:
    """Removes a header below which nothing is left, with the blank line above it."""
    begin, end = _section(lines, _scan(lines)[1], table)
    if begin is None or any(line.strip() for line in lines[begin:end]):
        return lines
    header = begin - 1
    above = header - 1 if header and not lines[header - 1].strip() else header
    return [*lines[:above], *lines[header + 1 :]]


def _scan(lines: Sequence[str]) -> tuple[list[_Entry], list[tuple[Path, int]]]:
    """All pairs, and all headers with their line numbers; the path of an array of tables is `("",)`."""
    entries: list[_Entry] = []
    headers: list[tuple[Path, int]] = []
    table, number = Path(), 0
    while number < len(lines):
        line = lines[number].removesuffix("\r")
        end = number + 1
        if header := _HEADER.fullmatch(line):
            table = _parts(header[1])
            headers.append((table, number))
        elif _ANY_HEADER.match(line):
            table = ("",)  # an array of tables: not one of ours
            headers.append((table, number))
        elif pair := _PAIR.fullmatch(line):
            end = _end_of_value(lines, number)
            entries.append(_Entry((*table, *_parts(pair[2])), table, number, end))
        number = end
    return entries, headers


def _end_of_value(lines: Sequence[str], start: int) -> int:
    """The number of the line after the value that begins on line `start`."""
    for end in range(start + 1, len(lines) + 1):
        if _parsed("\n".join(lines[start:end])) is not None:
            return end
    return start + 1


def _section(
    lines: Sequence[str], headers: Sequence[tuple[Path, int]], table: Path
) -> tuple[int | None, int]:
    """Where the lines below the table's header begin and end; None where there is no such table."""
    for index, (path, number) in enumerate(headers):
        if path == table:
            end = headers[index + 1][1] if index + 1 < len(headers) else len(lines)
            return number + 1, end
    return None, 0


def _find_commented(lines: Sequence[str], begin: int | None, end: int, name: str) -> int | None:
    """The number of the line `# name = value` in a section."""
    if begin is None:
        return None
    for number in range(begin, end):
        line = lines[number]
        if _is_header(line):
            return None
        if not line.startswith("#"):
            continue
        if _is_header(_uncommented(line)):
            return None  # from here on the comments belong to another table
        document = _parsed(_uncommented(line))
        if document is not None and list(document) == [name]:
            return number
    return None


def _find_commented_header(lines: Sequence[str], table: Path) -> int | None:
    for number, line in enumerate(lines):
        header = _HEADER.fullmatch(_uncommented(line).removesuffix("\r")) if line.startswith("#") else None
        if header and _parts(header[1]) == table:
            return number
    return None


def _is_header(line: str) -> bool:
    return _HEADER.fullmatch(line.removesuffix("\r")) is not None


def _uncommented(line: str) -> str:
    return line.removeprefix("#").removeprefix(" ")


def _with_new_value(lines: Sequence[str], value: Any) -> list[str]:
    """These lines with another value; a comment behind the old value stays."""
    whole = "\n".join(lines)
    found = _PAIR.fullmatch(whole)
    assert found is not None
    before, old = found[1], found[3]
    return f"{before}{_toml(value)}{_behind(before, old)}".split("\n")


def _behind(before: str, old: str) -> str:
    """What follows the value: white space and a comment."""
    places = [match.start() for match in re.finditer("#", old)]
    for place in places:
        if "\n" not in old[place:] and _parsed(before + old[:place]) == _parsed(before + old):
            value = old[:place].rstrip(" \t")
            comment = old[len(value) :]
            return "\r" * comment.endswith("\r") if comment.strip() == _NOT_SET else comment
    return old[len(old.rstrip()) :]


def _parsed(text: str) -> dict[str, Any] | None:
    try:
        return tomllib.loads(text + "\n")
    except tomllib.TOMLDecodeError:
        return None


def _parts(path: str) -> Path:
    document, parts = _parsed(f"{path} = 0"), []
    value: Any = document
    while isinstance(value, dict):
        name, value = next(iter(value.items()))
        parts.append(name)
    return tuple(parts)


def _joined(parts: Sequence[str]) -> str:
    return ".".join(part if re.fullmatch(r"[A-Za-z0-9_-]+", part) else _toml(part) for part in parts)


def _toml(value: Any) -> str:
    """JSON's strings, numbers, booleans and lists are valid TOML too."""
    return json.dumps(value, ensure_ascii=False)
