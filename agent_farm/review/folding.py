"""What is shown of a hunk: its lines, and one line in place of several that tell little."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from agent_farm.review.diff_as_read import FileRead, HunkRead, LineRead

_LEAST = 3


@dataclass(frozen=True, slots=True)
class Fold:
    """Stands for `lines`; `text` says what it hides."""

    text: str
    lines: tuple[LineRead, ...]


def folded(file: FileRead, hunk: HunkRead) -> Iterator[LineRead | Fold]:
    if file.generated and len(hunk.lines) > _LEAST:
        yield Fold(f"{_counted(hunk.lines)} of a generated file", hunk.lines)
        return
    for why, run in groupby(hunk.lines, _why):
        lines = tuple(run)
        if why and len(lines) >= _LEAST:
            yield Fold(f"{_counted(lines)} {why}", lines)
        else:
            yield from lines


def _why(line: LineRead) -> str:
    """The reason for folding a line, or ""; adjacent lines with the same reason become one fold."""
    if line.gone or line.sign not in "+-":
        return ""
    if line.moved:
        path = line.moved.rpartition(":")[0]
        return f"moved to {path}" if line.sign == "-" else f"moved from {path}"
    return "with other white space only" if line.space else ""


def _counted(lines: Sequence[LineRead]) -> str:
    changed = sum(line.sign in "+-" for line in lines)
    return f"{changed} line{'' if changed == 1 else 's'}"


def heading_of(file: FileRead, more: str = "") -> str:
    """The file's name, its line counts, and in words whatever else there is to read."""
    kind = "" if file.kind == "changed" else file.kind
    told = ", ".join(filter(None, (kind, _head_words(file), more)))
    return f"{file.path}  +{file.added} -{file.removed}" + (f"  ({told})" if told else "")


def _head_words(file: FileRead) -> str:
    """What there is to read about a file besides its lines, in words."""
    found: list[str] = []
    for row in file.head.split("\n"):
        word, _, rest = row.rpartition(" ")
        found += {
            "new file mode": [f"mode {rest}"],
            "old mode": [f"was mode {rest}"],
            "new mode": [f"mode {rest}"],
        }.get(word, [])
        if row.startswith(("rename from ", "copy from ")):
            found.append(f"was {file.former}")
        elif " bytes, " in row:
            found.append(f"too large to show, {row.partition(',')[0]}")
    if file.binary and not any("too large" in word for word in found):
        found.append("binary")
    return ", ".join(dict.fromkeys(found))
