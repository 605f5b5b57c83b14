"""The review: one result after another, riskiest first, and what each key does about it."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future
from contextlib import suppress
from pathlib import Path
from typing import ClassVar

from msgspec import structs
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Horizontal
from textual.events import Resize
from textual.widgets import Static

from agent_farm.board.keyed_screen import SIDEWAYS, KeyedScreen, bindings_of
from agent_farm.board.review_acts import ReviewActs
from agent_farm.board.review_keys import REVIEW_KEYS, Here
from agent_farm.board.review_rows import rows_of
from agent_farm.board.review_view import ReviewView
from agent_farm.board.verbs_on_a_thread import ask, on_a_thread
from agent_farm.cli.cells import cut
from agent_farm.errors import AgentFarmError
from agent_farm.operations.operation import Context
from agent_farm.operations.review import Review, ReviewItem, ReviewQueue, queue_and_first
from agent_farm.operations.review_show import ReviewShown, left_behind
from agent_farm.printable import printable

_BESIDE, _LISTED, _LIST = 120, 160, 40  # columns for two sides, columns for the list as well, its width
_LOOK_SECONDS = 15.0

First = Future[tuple[ReviewQueue, ReviewShown | None]]


class ReviewScreen(KeyedScreen):
    keys = REVIEW_KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(REVIEW_KEYS)

    def __init__(
        self,
        root: Path,
        called: str,
        ids: tuple[str, ...] = (),
        *,
        at: str | None = None,
        first: First | None = None,
    ) -> None:
        """Reviews `ids`, or everything, beginning `at` one of them; `first` has been asked for already."""
        super().__init__(root, called)
        self.ids, self._at, self._first = ids, at, first
        self.items: list[ReviewItem] = []
        self.place = 0
        self.shown: ReviewShown | None = None
        self.is_whole = False
        self.opened: set[str] = set()
        self.changed: list[str] = []  # ids with something that can be undone, latest last
        self.view = ReviewView()
        self.acts = ReviewActs(self)
        self._ahead: dict[tuple[str, str, bool], ReviewShown] = {}

    def compose(self) -> ComposeResult:
        yield Static(self.called, id="head")
        yield Horizontal(Static("", id="results"), self.view, id="review")
        yield Static("", id="said")
        yield Static("", id="keys")

    def on_mount(self) -> None:
        self.view.focus()
        self.aside(self._begin)
        self.set_interval(_LOOK_SECONDS, self.count_again)

    async def _begin(self) -> None:
        queue, shown = await (asyncio.wrap_future(self._first) if self._first else self._ask_first())
        self.items = list(queue.items)
        self.place = next((at for at, item in enumerate(self.items) if shown and item.id == shown.id), 0)
        for failure in queue.failed[:3]:
            self.say(f"{failure.id}: {failure.what}", failure.why)
        if shown:
            self._draw(shown)
            self._look_ahead()
            await self._look_behind(shown)
        else:
            self.say("There is nothing to review." if not queue.failed else None)
            self.say_keys()

    async def _look_behind(self, shown: ReviewShown) -> None:
        """Adds uncommitted files, which the first look left out."""

        def asked(context: Context) -> tuple[str, ...]:
            return left_behind(context.farm, context.farm.require(shown.id))

        behind = await on_a_thread(self.root, asked, tolerant=True)
        if behind and self.shown is shown:
            self._draw(structs.replace(shown, left_behind=behind), self.view.cursor)

    async def _ask_first(self) -> tuple[ReviewQueue, ReviewShown | None]:
        def asked(context: Context) -> tuple[ReviewQueue, ReviewShown | None]:
            return queue_and_first(context, Review(self.ids), self._at)

        return await on_a_thread(self.root, asked, tolerant=True)

    @property
    def item(self) -> ReviewItem | None:
        return self.items[self.place] if self.place < len(self.items) else None

    @property
    def chosen(self) -> Here:
        undoable = bool(self.changed or (self.item and self.item.undoable))
        return Here(self.item, self.shown, tuple(self.view.chosen), undoable)

    async def open(self, place: int) -> None:
        """Show the result at that place, reading it from git unless that was done ahead."""
        if not self.items:
            return
        before, self.place = self.place, max(0, min(place, len(self.items) - 1))
        item = self.items[self.place]
        try:
            shown = self._ahead.pop((item.id, item.tip, self.is_whole), None)
            shown = shown or await ask(self.root, "review_show", id=item.id, whole=self.is_whole)
        except AgentFarmError:
            self.place = before  # keys act on what is on the screen
            raise
        if self.item is item:
            self._draw(shown)
            self._look_ahead()

    async def again(self, *, hunk: str | None = None) -> None:
        """Show the same result again after a change to it; the cursor goes to that hunk if it exists."""
        item = self.item
        if item is None:
            return
        cursor = self.view.cursor
        shown: ReviewShown = await ask(self.root, "review_show", id=item.id, whole=self.is_whole)
        if self.item is item:
            self._draw(shown, cursor, hunk)
        self.count_again()

    def _draw(self, shown: ReviewShown, cursor: int = 0, hunk: str | None = None) -> None:
        self.shown = shown
        wide = self.size.width - (_LIST if self.size.width >= _LISTED else 0) >= _BESIDE
        rows = rows_of(self.item, shown, opened=self.opened, beside=wide)
        if cursor:  # rows added above it do not move it to another line
            same = (at for at, row in enumerate(rows) if row == self.view.row)
            cursor = min(same, key=lambda at: abs(at - cursor), default=cursor)
        if hunk is not None:
            ids = {
                (at, number): one.id
                for at, file in enumerate(shown.files)
                for number, one in enumerate(file.hunks)
            }
            there = (at for at, row in enumerate(rows) if ids.get((row.file, row.hunk)) == hunk)
            cursor = next(there, cursor)
        self.view.show(shown, rows, cursor)
        self._say_where()
        # slow work waits until there is something to read
        self.call_after_refresh(self.run_worker, self._coloured, group="colours", exclusive=True)

    def redraw(self) -> None:
        if self.shown:
            self._draw(self.shown, self.view.cursor)

    async def _coloured(self) -> None:
        if self.shown:
            await asyncio.to_thread(self.view.colours.read, self.shown.files)
            self.view.refresh()

    def _look_ahead(self) -> None:
        self.call_after_refresh(self.run_worker, self._read_ahead, group="ahead", exclusive=True)

    async def _read_ahead(self) -> None:
        place = self.place + 1
        if place < len(self.items):
            item, whole = self.items[place], self.is_whole
            key = (item.id, item.tip, whole)
            if key not in self._ahead:
                with suppress(AgentFarmError):  # reported when somebody goes there
                    self._ahead = {key: await ask(self.root, "review_show", id=item.id, whole=whole)}

    def count_again(self) -> None:
        self.aside(self._count_again, "count")

    async def _count_again(self) -> None:
        """Reads the queue's state of each result anew; the order does not change while a person looks."""
        queue: ReviewQueue = await ask(self.root, "review", ids=self.ids)
        now = {item.id: item for item in queue.items}
        before, here = {item.id for item in self.items}, self.item
        self._ahead = {key: shown for key, shown in self._ahead.items() if key[0] in now}
        self.items = [now.get(item.id, item) for item in self.items]
        self.items += [item for item in queue.items if item.id not in before]
        if here is None and self.items:
            await self.open(0)
        elif self.shown and self.item and self.item.tip != self.shown.tip:
            self.say(f"{self.item.id} has new work: w shows it")
        self._say_where()

    def _say_where(self) -> None:
        item = self.item
        parts = [self.called]
        if item is not None:
            parts = [
                f"{self.place + 1}/{len(self.items)}",
                item.id,
                f"risk {item.risk}",
                f"+{item.added} -{item.removed}",
            ]
            parts += [item.progress, item.state, *(["all of it"] if self.is_whole else [])]
        self.query_one("#head", Static).update(
            Text(printable(" · ".join(parts)), no_wrap=True, overflow="ellipsis")
        )
        self.query_one("#results", Static).update(self._list())
        self.say_keys()

    def _list(self) -> Text:
        """The results around the one on the screen."""
        text = Text(no_wrap=True)
        first = max(0, self.place - self.size.height // 4)
        for at, item in enumerate(self.items[first : first + self.size.height // 2], first):
            done = "✓" if item.decision or (item.files and not item.unread) else " "
            here = "›" if at == self.place else " "
            text.append(
                f"{here}{done}{item.risk:>4} {cut(item.id, 28)}\n", "bold" if at == self.place else ""
            )
            text.append(printable(cut(f"       {' '.join(item.title.split())}", _LIST - 5)) + "\n", "dim")
        return text

    def on_resize(self, event: Resize) -> None:
        self.set_class(event.size.width >= _LISTED, "listed")
        self.redraw()
        self.say_keys()

    def on_review_view_moved(self) -> None:
        self.say_keys()

    def action_move(self, by: int) -> None:
        self.view.move(by)

    def action_shift(self, by: int) -> None:
        self.view.shift(by * SIDEWAYS)

    def action_page(self, by: int) -> None:
        self.view.move(by * max(1, self.view.size.height - 2))

    def action_go_to(self, place: int) -> None:
        self.view.go_to(place if place >= 0 else len(self.view.rows))

    def action_back(self) -> None:
        """Drops the range; without one, closes the screen if there is one to go back to."""
        if self.view.begin is None and len(self.app.screen_stack) > 1:
            self.keyed.leave()
            return
        self.view.begin = None
        self.view.refresh()
        self.say()

    def act_range(self) -> None:
        self.view.begin = self.view.cursor if self.view.begin is None else None
        self.view.refresh()

    def act_hunk(self) -> None:
        if not self.view.next_hunk(1):
            self.say("There is no further hunk. n goes to the next result.")

    def act_hunk_before(self) -> None:
        self.view.next_hunk(-1)

    def act_unfold(self) -> None:
        row = self.view.row
        if row and row.key:
            self.opened.add(row.key)
            self.redraw()
