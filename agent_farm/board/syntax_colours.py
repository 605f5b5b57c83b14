"""Colours of code, by the name of its file; found when a file is first shown, and after it is."""

from __future__ import annotations

from collections.abc import Sequence

from rich.text import Span, Text

from agent_farm.review.reading import FileRead, HunkRead, LineRead

_MOST = 60_000  # characters of a hunk that are coloured
_THEME = "ansi_light"  # the terminal's own colours, on dark ground too


class SyntaxColours:
    """By file and hunk; the lexers of Pygments take long to load."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], dict[int, list[Span]]] = {}

    def spans(self, file: FileRead, hunk: HunkRead, line: LineRead) -> list[Span]:
        """None yet, where the hunk has not been read."""
        return self._known.get((file.path, hunk.id), {}).get(id(line), [])

    def read(self, files: Sequence[FileRead]) -> None:
        for file in files:
            for hunk in file.hunks:
                if (file.path, hunk.id) not in self._known:
                    self._known[file.path, hunk.id] = _spans(file, hunk)


def _spans(file: FileRead, hunk: HunkRead) -> dict[int, list[Span]]:
    found: dict[int, list[Span]] = {}
    for sign in "-+":
        lines = [line for line in hunk.lines if line.sign in (" ", sign)]
        code = "\n".join(line.text for line in lines)
        if len(code) <= _MOST:
            for line, coloured in zip(lines, _coloured(file.path, code), strict=False):
                found[id(line)] = coloured.spans
    return found


def _coloured(path: str, code: str) -> list[Text]:
    from rich.syntax import Syntax

    lexer = Syntax.guess_lexer(path)
    if lexer == "default":
        return []
    text = Syntax(code, lexer, theme=_THEME, background_color="default").highlight(code)
    return list(text.split("\n", allow_blank=True))
