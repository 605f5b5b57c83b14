"""The list of builders: one line each, and a cursor that stays on its builder while others move."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence

from rich.segment import Segment
from textual.events import Click, Resize
from textual.geometry import Region, Size
from textual.message import Message
from textual.reactive import reactive
from textual.scroll_view import ScrollView
from textual.strip import Strip

from agent_farm.board.board_order import Group
from agent_farm.board.line_text import BoardLine, Look, lines_of, text_of
from agent_farm.operations.shown import BuilderShown


class BuilderList(ScrollView, can_focus=True):
    current: reactive[str | None] = reactive(None)

    class Chose(Message):
        """The cursor is on another builder, or something about its builder has changed."""

    def __init__(self) -> None:
        super().__init__(id="builders")
        self.marked: set[str] = set()
        self.groups: Sequence[Group] = ()
        self.landing: Mapping[str, str] = {}
        self._lines: list[BoardLine] = []
        self._look = Look(0, 0.0, self.marked, None, {})
        self._ids: list[str] = []

    @property
    def builders(self) -> dict[str, BuilderShown]:
        return {one.id: one for group in self.groups for one in group.builders}

    @property
    def chosen(self) -> list[BuilderShown]:
        """The marked builders, or else the one under the cursor."""
        builders = self.builders
        if self.marked:
            return [one for id, one in builders.items() if id in self.marked]
        return [builders[self.current]] if self.current in builders else []

    def show(self, groups: Sequence[Group], landing: Mapping[str, str]) -> None:
        """If its builder is gone, the cursor stays at its place in the list."""
        place = self._ids.index(self.current) if self.current in self._ids else 0
        self.groups, self.landing = groups, landing
        self._lines = lines_of(groups)
        self._ids = [one.id for group in groups for one in group.builders]
        self.marked &= set(self._ids)
        if self.current not in self._ids:
            self.current = self._ids[min(place, len(self._ids) - 1)] if self._ids else None
        self.virtual_size = Size(self.size.width, len(self._lines))
        self.redraw()
        self.post_message(self.Chose())

    def redraw(self) -> None:
        width = self.scrollable_content_region.width or self.size.width
        self._look = Look(width, time.time(), self.marked, self.current, self.landing)
        self.refresh()

    def mark(self) -> None:
        if self.current is not None:
            self.marked ^= {self.current}
            self.move(1)
            self.redraw()

    def mark_group(self) -> None:
        """The group of the builder under the cursor, without builders that a filter hides."""
        groups = ({one.id for one in group.builders} for group in self.groups)
        ids = next((some for some in groups if self.current in some), set[str]())
        self.marked = self.marked - ids if ids <= self.marked else self.marked | ids
        self.redraw()

    def unmark(self) -> None:
        self.marked.clear()
        self.redraw()

    def move(self, by: int) -> None:
        if self._ids:
            place = self._ids.index(self.current) + by if self.current in self._ids else 0
            self.current = self._ids[max(0, min(place, len(self._ids) - 1))]

    def go_to(self, place: int) -> None:
        if self._ids:
            self.current = self._ids[place]

    def watch_current(self) -> None:
        self.redraw()
        self._scroll_to_current()
        self.post_message(self.Chose())

    def _scroll_to_current(self) -> None:
        places = [place for place, line in enumerate(self._lines) if line.id == self.current]
        if places:
            first = places[0] - (1 if places[0] and self._lines[places[0] - 1].id is None else 0)
            self.scroll_to_region(Region(0, first, 1, places[-1] - first + 1), animate=False)

    def on_resize(self, event: Resize) -> None:
        self.redraw()
        self._scroll_to_current()

    def on_click(self, event: Click) -> None:
        place = event.y + self.scroll_offset.y
        if 0 <= place < len(self._lines) and (id := self._lines[place].id):
            self.current = id

    def render_line(self, y: int) -> Strip:
        place = y + self.scroll_offset.y
        if place >= len(self._lines):
            return Strip.blank(self.size.width, self.rich_style)
        text = text_of(self._lines[place], self._look)
        segments = [part for part in text.render(self.app.console) if part.text != "\n"]
        base = self.rich_style
        drawn = [Segment(part.text, base + part.style if part.style else base) for part in segments]
        return Strip(drawn).adjust_cell_length(self.size.width, base)
