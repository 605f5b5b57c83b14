"""A result, row by row, with a cursor and a range; only rows on the screen are drawn."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.text import Text
from textual.events import Click
from textual.geometry import Region, Size
from textual.message import Message
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent_farm.board.review_rows import Row
from agent_farm.operations.review_show import ReviewShown
from agent_farm.printable import printable
from agent_farm.review.diff_as_read import FileRead, HunkRead, LineRead

if TYPE_CHECKING:
    from agent_farm.review.syntax import Tokens

_SIGN_STYLES = {"+": "green", "-": "red"}
_KIND_STYLES = {
    "keyword": "blue",
    "string": "yellow",
    "comment": "italic dim",
    "number": "cyan",
    "name": "bold",
    "builtin": "cyan",
}
_NUMBER = 5
_AROUND = 3


class ReviewView(ScrollView, can_focus=True):
    class Moved(Message):
        """The cursor has moved."""

    def __init__(self) -> None:
        super().__init__(id="result")
        self.rows: Sequence[Row] = ()
        self.cursor = 0
        self.begin: int | None = None
        self.colours = SyntaxColours()
        self._shown: ReviewShown | None = None
        self._left = 0

    def show(self, shown: ReviewShown, rows: Sequence[Row], cursor: int) -> None:
        self._shown, self.rows, self.begin = shown, rows, None
        self.virtual_size = Size(self.size.width, len(rows))
        self.go_to(cursor)
        self.refresh()

    @property
    def row(self) -> Row | None:
        return self.rows[self.cursor] if self.cursor < len(self.rows) else None

    @property
    def chosen(self) -> list[Row]:
        """The rows of the range, or else the one under the cursor."""
        if self.row is None:
            return []
        first, last = sorted((self.cursor if self.begin is None else self.begin, self.cursor))
        return list(self.rows[first : last + 1])

    def go_to(self, place: int) -> None:
        self.cursor = max(0, min(place, len(self.rows) - 1))
        region = Region(0, max(0, self.cursor - _AROUND), 1, 2 * _AROUND + 1)
        self.scroll_to_region(region, animate=False, immediate=True)
        self.refresh()
        self.post_message(self.Moved())

    def move(self, by: int) -> None:
        self.go_to(self.cursor + by)

    def next_hunk(self, by: int) -> bool:
        """Returns whether there is one."""
        place = self.cursor + by
        while 0 <= place < len(self.rows):
            if self.rows[place].kind == "hunk":
                self.go_to(place)
                self.scroll_to(y=max(0, place - _AROUND), animate=False, immediate=True)
                return True
            place += by
        return False

    def shift(self, by: int) -> None:
        self._left = max(0, self._left + by)
        self.refresh()

    def on_click(self, event: Click) -> None:
        self.go_to(event.y + self.scroll_offset.y)

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        base = self.rich_style
        if place >= len(self.rows):
            return Strip.blank(self.size.width, base)
        width = self.scrollable_content_region.width or self.size.width
        text = self._drawn(self.rows[place], width - 1)
        inside = self.begin is not None and min(self.begin, self.cursor) <= place <= max(
            self.begin, self.cursor
        )
        pointer = "›" if place == self.cursor else "┃" if inside else " "
        whole = Text(no_wrap=True, end="").append(pointer, "bold").append_text(text)
        if place == self.cursor:
            whole.pad_right(max(0, width - whole.cell_len))
            whole.stylize("reverse", 0, 1)
            whole.stylize("bold")
        drawn = [
            Segment(part.text, base + part.style if part.style else base)
            for part in whole.render(self.app.console)
            if part.text != "\n"
        ]
        return Strip(drawn).adjust_cell_length(self.size.width, base)

    def _drawn(self, row: Row, width: int) -> Text:
        if row.kind != "line":
            indent = {"told": "", "file": "", "hunk": "", "fold": "      ", "comment": "    ▷ "}[row.kind]
            text = Text(printable(indent + row.text), style=row.style, no_wrap=True, end="")
        elif not row.beside and row.left is not None:
            text = self._line(row, row.left)
        else:
            half = (width - 1) // 2
            text = Text(no_wrap=True, end="")
            for at, line in enumerate((row.left, row.right)):
                side = self._line(row, line, at) if line else Text()
                side.truncate(half, pad=True)
                text.append_text(side)
                if at == 0:
                    text.append("│", "dim")
        text.truncate(width)
        return text

    def _line(self, row: Row, line: LineRead, side: int | None = None) -> Text:
        if line.sign == "…":
            return Text(f"{'':{_NUMBER}}   ⋯ {line.text}", style="dim italic")
        number = line.old if side == 0 else line.new or line.old
        sign = "~" if line.gone else line.sign
        style = "yellow" if line.gone else "dim" if line.read else _SIGN_STYLES.get(line.sign, "")
        text = Text(f"{number or '':>{_NUMBER}} {sign} ", style=style)
        if line.gone:
            text.append(f"{line.fate}: ", "yellow italic")
        text.append_text(self._code(row, line, style))
        return text

    def _code(self, row: Row, line: LineRead, style: str) -> Text:
        plain, places = _plain(line.text)
        code, last = Text(plain), len(places) - 1
        if not line.read and not line.gone and self._shown:
            file = self._shown.files[row.file]
            for begin, end, kind in self.colours.tokens(file, file.hunks[row.hunk], line):
                code.stylize(_KIND_STYLES[kind], places[min(begin, last)], places[min(end, last)])
        for begin, end in line.marks:
            code.stylize(f"bold underline {style}", places[min(begin, last)], places[min(end, last)])
        if line.read:
            code.stylize("dim")
        return code[self._left :] if self._left else code


def _plain(text: str) -> tuple[str, list[int]]:
    """The part of `text` that can be shown, and the new position of each of its characters."""
    parts, places, length = [], [0], 0
    for char in text:
        part = "    " if char == "\t" else printable(char)
        parts.append(part)
        length += len(part)
        places.append(length)
    return "".join(parts), places


class SyntaxColours:
    """Syntax colours of the code: found after a result is first shown, since the lexers take long to load."""

    def __init__(self) -> None:
        self._known: dict[tuple[str, str], Mapping[int, Tokens]] = {}

    def tokens(self, file: FileRead, hunk: HunkRead, line: LineRead) -> Tokens:
        """Empty until the hunk has been read."""
        return self._known.get((file.path, hunk.id), {}).get(id(line), ())

    def read(self, files: Sequence[FileRead]) -> None:
        from agent_farm.review.syntax import tokens_of_hunk

        for file in files:
            for hunk in file.hunks:
                found = tokens_of_hunk(file, hunk)
                self._known[file.path, hunk.id] = {id(hunk.lines[at]): some for at, some in found.items()}
