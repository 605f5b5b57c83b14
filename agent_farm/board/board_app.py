"""The board: the list, the view beside it, the keys below, and what each key does."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import ClassVar

from rich.style import Style
from rich.text import Text
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Container
from textual.events import Click, Resize
from textual.widgets import Input, Static

from agent_farm.board.acts import Act, Acts
from agent_farm.board.board_order import NEEDED, SORTINGS, arrange, group_of, next_needing
from agent_farm.board.builder_list import BuilderList
from agent_farm.board.following import Known, follow
from agent_farm.board.key_table import KEYS, Key
from agent_farm.board.landing_text import landing_line, landing_marks, news
from agent_farm.board.view import View
from agent_farm.cli.cells import counted
from agent_farm.operations.shown import BuilderShown

_BESIDE, _BELOW = 120, 24  # columns from which the view stands beside the list, rows from which below it
_AGES_SECONDS = 5.0
_MARGINS = 2


class KeyLine(Static):
    """Every key; one that does nothing now stands in brackets and is dim."""

    def show(self, chosen: list[BuilderShown], width: int) -> None:
        text, used = Text(no_wrap=True), 0
        for key in KEYS:
            part = _part(key, enabled=key.refuse(chosen) is None)
            if used and used + part.cell_len > width:
                text, used = text.append("\n"), 0
            text.append_text(part).append("  ")
            used += part.cell_len + 2
        self.update(text)


def _part(key: Key, *, enabled: bool) -> Text:
    part = Text(f"{key.shown} {key.word}" if enabled else f"({key.shown} {key.word})")
    part.stylize("bold" if enabled else "dim", 0, len(key.shown) if enabled else None)
    part.stylize(Style.from_meta({"@click": f"app.press('{key.keys}')"}))
    return part


class BoardApp(App[None]):
    CSS_PATH = "board.tcss"
    ENABLE_COMMAND_PALETTE = False
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+c", "quit", show=False, priority=True),
        # Tab would go to the next widget first
        *(Binding(key.keys, f"press('{key.keys}')", show=False, priority=key.keys == "tab") for key in KEYS),
        Binding("up,k", "move(-1)", show=False),
        Binding("down,j", "move(1)", show=False),
        Binding("home,g", "go_to(0)", show=False),
        Binding("end,G", "go_to(-1)", show=False),
        Binding("pagedown", "scroll(1)", show=False),
        Binding("pageup", "scroll(-1)", show=False),
        Binding("escape", "back", show=False),
    ]

    def __init__(self, root: Path) -> None:
        super().__init__()
        self.root = root
        self.known: Known | None = None
        self.sorting = SORTINGS[0]
        self.words = ""
        self.builders, self.view = BuilderList(), View(root)
        self.acts = Acts(self)
        self.failure: Exception | None = None
        self.is_opening = False

    def _handle_exception(self, error: Exception) -> None:
        """A bug ends the board; who started it tells of it as of every other."""
        self.failure = self.failure or error
        self.exit()

    def compose(self) -> ComposeResult:
        yield Static(self.root.name, id="head")
        yield Static("", id="landing")
        yield Container(self.builders, self.view, id="body")
        yield Input(placeholder="words to show only", id="filter")
        yield Static("", id="said")
        yield KeyLine(id="keys")

    def on_mount(self) -> None:
        self.theme = "ansi-dark"  # the terminal's own colours, light or dark
        self.title = f"af board: {self.root.name}"
        self.builders.focus()
        self.run_worker(self._follow())
        self.set_interval(_AGES_SECONDS, self.builders.redraw)
        self._say_keys()

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
        needing = sum(group_of(one) == NEEDED for one in known.builders.values())
        parts = [self.root.name, counted(len(known.builders), "builder")]
        parts += [f"{needing} need{'s' if needing == 1 else ''} you"] if needing else []
        parts += [f"only: {self.words}"] if self.words else []
        parts += [f"by {self.sorting}"] if self.sorting != SORTINGS[0] else []
        return Text(" · ".join(parts), no_wrap=True, overflow="ellipsis")

    def say(self, *words: str | None) -> None:
        """What came of a key, until the next one."""
        text = "\n".join(word for word in words if word)
        said = self.query_one("#said", Static)
        said.update(Text(text))
        said.set_class(bool(text), "shown")

    def on_resize(self, event: Resize) -> None:
        self._lay_out(event.size.width, event.size.height)

    def _lay_out(self, width: int, height: int) -> None:
        whole = self.has_class("whole")
        self.set_class(width >= _BESIDE and not whole, "beside")
        self.set_class(whole or width >= _BESIDE or height >= _BELOW, "with-view")
        self._say_keys()

    def on_builder_list_chose(self) -> None:
        chosen = self.builders.builders.get(self.builders.current or "")
        self.view.of(chosen)
        self._say_keys()

    def _say_keys(self) -> None:
        self.query_one(KeyLine).show(self.builders.chosen, self.size.width - _MARGINS)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a box or a line asks for text, or is about to, the keys are its own."""
        typing = self.is_opening or len(self.screen_stack) > 1 or isinstance(self.focused, Input)
        return not (typing and action == "press")

    def action_move(self, by: int) -> None:
        self.builders.move(by)

    def action_go_to(self, place: int) -> None:
        self.builders.go_to(place)

    def action_press(self, keys: str) -> None:
        key = next(key for key in KEYS if key.keys == keys)
        why = key.refuse(self.builders.chosen)
        self.say(f"{key.word}: {why}" if why else None)
        if not why:
            self._act(key)

    def _act(self, key: Key) -> None:
        own: Callable[[], None] | None = getattr(self, f"act_{key.action}", None)
        if own is not None:
            own()
            return
        act: Act = getattr(self.acts, key.action)
        self.is_opening = key.asks
        self.run_worker(self.acts.guarded(act, self.builders.chosen))

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
        self._say_keys()

    def act_mark_all(self) -> None:
        self.builders.mark_group()
        self._say_keys()

    def act_order(self) -> None:
        self.sorting = SORTINGS[(SORTINGS.index(self.sorting) + 1) % len(SORTINGS)]
        self._arrange()

    def act_filter(self) -> None:
        line = self.query_one("#filter", Input)
        line.display = True
        self.screen.set_focus(line)  # at once: the next key is a letter of the filter already

    def act_quit(self) -> None:
        self.exit()

    def on_input_changed(self, event: Input.Changed) -> None:
        if event.input.id == "filter":
            self.words = event.value
            self._arrange()

    def on_input_submitted(self, event: Input.Submitted) -> None:
        if event.input.id == "filter":
            event.input.display = False
            self.screen.set_focus(self.builders)

    async def action_back(self) -> None:
        line = self.query_one("#filter", Input)
        line.value = ""
        line.display = False
        self.remove_class("whole")
        self._lay_out(*self.size)
        self.builders.unmark()
        self.screen.set_focus(self.builders)
        self._say_keys()
        self.say()

    def action_scroll(self, by: int) -> None:
        (self.view.scroll_page_down if by > 0 else self.view.scroll_page_up)(animate=False)

    def on_click(self, event: Click) -> None:
        if event.chain == 2 and event.widget is self.builders:
            self.action_press("enter")
