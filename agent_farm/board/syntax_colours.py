"""Colours of code, found when a result is first shown, and after it is: the lexers take long to load."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from agent_farm.review.diff_as_read import FileRead, HunkRead, LineRead

if TYPE_CHECKING:
    from agent_farm.review.syntax import Tokens


class SyntaxColours:
    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mapping[int, Tokens]] = {}

    def tokens(self, file: FileRead, hunk: HunkRead, line: LineRead) -> Tokens:
        """None yet, where the hunk has not been read."""
        return self._known.get((file.path, hunk.id), {}).get(id(line), ())

    def read(self, files: Sequence[FileRead]) -> None:
        from agent_farm.review.syntax import tokens_of_hunk

        for file in files:
            for hunk in file.hunks:
                found = tokens_of_hunk(file, hunk)
                self._known[file.path, hunk.id] = {id(hunk.lines[at]): some for at, some in found.items()}
