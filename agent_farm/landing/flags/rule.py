"""What a rule is: finds flags in a diff, given what was asked for."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence

from msgspec import Struct

from agent_farm.builders.proof import Flag
from agent_farm.landing.flags.parsed_diff import DiffLine, FileChange

_LENGTH = 100  # the longest text of a flag


class TaskScope(Struct, frozen=True):
    """What was asked for: `files` are those that the task names, `scripts` those that checks run."""

    files: tuple[str, ...] = ()
    scripts: frozenset[str] = frozenset()


Rule = Callable[[Sequence[FileChange], TaskScope], Iterable[Flag]]


def new_lines(file: FileChange, pattern: re.Pattern[str], kind: str, text: str) -> Iterator[Flag]:
    """Added lines that match, less matching lines that were removed: moving or indenting adds nothing."""
    gone = Counter(line.text.strip() for line in file.removed)
    for line in file.added:
        if pattern.search(line.text) and not _is_remark(line.text):
            if gone[line.text.strip()] > 0:
                gone[line.text.strip()] -= 1
            else:
                yield Flag(kind, file.path, line.number, shown(text, line))


def _is_remark(text: str) -> bool:
    line = text.strip()
    return line.startswith(("# ", "// ", "* ", '"""')) and not line.startswith(("// +build",))


def shown(text: str, line: DiffLine) -> str:
    return cut(f"{text}: {' '.join(line.text.split())}")


def cut(text: str) -> str:
    return text if len(text) <= _LENGTH else f"{text[: _LENGTH - 1]}…"
