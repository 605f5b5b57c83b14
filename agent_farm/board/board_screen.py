"""The board: the list, the view beside it, the keys below, and what each key does."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from rich.text import Text
from textual.app import ComposeResult
from textual.binding import BindingType
from textual.containers import Container
from textual.events import Click, Resize
from textual.widgets import Input, Static

from agent_farm.board.acts import Acts
from agent_farm.board.board_order import SORTINGS, arrange, next_needing
from agent_farm.board.builder_list import BuilderList
from agent_farm.board.following import Known, follow
from agent_farm.board.key_table import KEYS
from agent_farm.board.keyed_screen import SIDEWAYS, KeyedScreen, bindings_of
from agent_farm.board.landing_text import landing_line, landing_marks, news
from agent_farm.board.view import View
from agent_farm.builders.status import NEEDS_YOU
from agent_farm.cli.cells import counted
from agent_farm.operations.shown import BuilderShown

_BESIDE, _BELOW = 120, 24  # columns for the view beside the list, rows for it below the list
_AGES_SECONDS = 5.0


class BoardScreen(KeyedScreen):
    keys = KEYS
    BINDINGS: ClassVar[list[BindingType]] = bindings_of(KEYS)

    def __init__(self, root: Path, called: str) -> None:
        super().__init__(root, called)
        self.known: Known | None = None
        self.sorting = SORTINGS[0]
        self.words = ""
        self.builders, self.view = BuilderList(), View(root)
        self.acts = Acts(self)

    @property
    def chosen(self) -> list[BuilderShown]:
        return self.builders.chosen

    def compose(self) -> ComposeResult:
        yield Static(self.called, id="head")
        yield Static("", id="landing")
        yield Container(self.builders, self.view, id="body")
        yield Input(placeholder="words to filter by", id="filter")
        yield Static("", id="said")
        yield Static("", id="keys")

    def on_mount(self) -> None:
        self.builders.focus()
        self.run_worker(self._follow())
        self.set_interval(_AGES_SECONDS, self.builders.redraw)
        self.say_keys()

    async def _follow(self) -> None:
        async for known in follow(self.root):
            before, self.known = self.known, known
            self._arrange()
            if told := news(before.landing if before else None, known.landing):
                self.say(*told)

    def _arrange(self) -> None:
        if self.known is None:
            return
        found = self.known.builders.values()
        groups = arrange(found, words=self.words, sorting=self.sorting)
        self.builders.show(groups, landing_marks(self.known.landing))
        self.query_one("#head", Static).update(self._heading(self.known))
        landing, line = self.query_one("#landing", Static), landing_line(self.known.landing)
        landing.display = line is not None
        landing.update(line or "")
        if self.known.trouble and self.known.trouble.what:
            self.say(self.known.trouble.what, self.known.trouble.hint)

    def _heading(self, known: Known) -> Text:
        needing = sum(one.status.state in NEEDS_YOU for one in known.builders.values())
        parts = [self.called, counted(len(known.builders), "builder")]
        parts += [f"{needing} need{'s' if needing == 1 else ''} you"] if needing else []
        parts += [f"only: {self.words}"] if self.words else []
        parts += [f"by {self.sorting}"] if self.sorting != SORTINGS[0] else []
        return Text(" · ".join(parts), no_wrap=True, overflow="ellipsis")

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        whole = self.has_class("whole")
        self.set_class(width >= _BESIDE and not whole, "beside")
        self.set_class(whole or width >= _BESIDE or height >= _BELOW, "with-view")
        self.say_keys()

    def on_builder_list_chose(self) -> None:
        chosen = self.builders.builders.get(self.builders.current or "")
        self.view.of(chosen)
        self.say_keys()

    def action_move(self, by: int) -> None:
        self.builders.move(by)

    def action_go_to(self, place: int) -> None:
        self.builders.go_to(place)

    def act_next(self) -> None:
        found = next_needing(self.builders.groups, self.builders.current)
        if found is None:
            self.say("Nobody needs you.")
        else:
            self.builders.current = found

    def act_view(self) -> None:
        if not self.has_class("with-view"):
            self.act_whole()
        else:
            self.view.next()

    def act_whole(self) -> None:
        self.set_class(not self.has_class("whole"), "whole")
        self._lay_out(*self.size)

    def act_mark(self) -> None:
        self.builders.mark()
        self.say_keys()

    def act_mark_all(self) -> None:
        self.builders.mark_group()
        self.say_keys()

    def act_review(self) -> None:
        """Review the marked builders, or all, beginning with the one under the cursor."""
        from agent_farm.board.review_screen import ReviewScreen  # loaded here so that the board paints sooner

        marked = tuple(one.id for one in self.chosen) if self.builders.marked else ()
        self.app.push_screen(
            ReviewScreen(self.root, self.called, marked, at=None if marked else self.builders.current)
        )

    def on_screen_resume(self) -> None:
        self.view.look_again()

    def act_order(self) -> None:
        self.sorting = SORTINGS[(SORTINGS.index(self.sorting) + 1) % len(SORTINGS)]
        self._arrange()

    def act_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.display = True
        self.set_focus(line)  # at once: the next key is already a letter of the filter

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.words = event.value
            self._arrange()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            event.input.display = False
            self.set_focus(self.builders)

    async def action_back(self) -> None:
        line = self.query_one("#filter", Input)
        line.value = ""
        line.display = False
        self.remove_class("whole")
        self._lay_out(*self.size)
        self.builders.unmark()
        self.set_focus(self.builders)
        self.say_keys()
        self.say()

    def action_shift(self, by: int) -> None:
        self.view.scroll_relative(x=by * SIDEWAYS, animate=False, force=True)

    def action_page(self, by: int) -> None:
        (self.view.scroll_page_down if by > 0 else self.view.scroll_page_up)(animate=False)

    def on_click(self, event: Click) -> None:
        if event.chain == 2 and event.widget is self.builders:
            self.action_press("enter")
