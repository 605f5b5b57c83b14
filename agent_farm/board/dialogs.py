"""The board's boxes: a line of text, a task, a yes with its evidence, an answer to a builder's dialog."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import ClassVar

from rich.console import RenderableType
from rich.text import Text
from textual.app import ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import Vertical, VerticalScroll
from textual.events import Key
from textual.screen import ModalScreen
from textual.widgets import Input, Label, OptionList, Select, Static, TextArea
from textual.widgets.option_list import Option

from agent_farm.board.leaving import edit_text
from agent_farm.board.verbs_on_a_thread import ask
from agent_farm.errors import AgentFarmError
from agent_farm.operations.choices import Offered

_TAIL = 18
_LOOK_SECONDS = 0.4


class Box(Vertical):
    def __init__(self, title: str, foot: str, *children: VerticalScroll | Static | Input | TextArea) -> None:
        super().__init__(*children, classes="box")
        self.border_title, self.border_subtitle = title, foot


class LineBox(ModalScreen[str | None]):
    """One line of text, or None for Esc; `typed` is the text in the box, even after Esc."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, title: str, value: str = "") -> None:
        super().__init__()
        self._title, self.typed = title, value

    def compose(self) -> ComposeResult:
        yield Box(self._title, "Enter: done · Esc: back", Input(self.typed))

    def on_input_changed(self, event: Input.Changed) -> None:
        self.typed = event.value

    def on_input_submitted(self, event: Input.Submitted) -> None:
        self.dismiss(event.value)


class Confirm(ModalScreen[str | None]):
    """Shows the evidence and what the keys in `choices` do; returns the key, or None for Esc."""

    def __init__(self, title: str, evidence: RenderableType, choices: dict[str, str]) -> None:
        super().__init__()
        self._title, self._evidence, self._choices = title, evidence, choices

    def compose(self) -> ComposeResult:
        shown = {"enter": "Enter"}
        foot = " · ".join(f"{shown.get(key, key)}: {word}" for key, word in self._choices.items())
        body = VerticalScroll(Static(self._evidence))
        yield Box(self._title, f"{foot}{' · ' if foot else ''}Esc: back", body)

    def on_key(self, event: Key) -> None:
        pressed = event.character if event.character in self._choices else event.key
        if pressed in self._choices:
            event.stop()
            self.dismiss(pressed)
        elif event.key in ("escape", "q"):
            event.stop()
            self.dismiss(None)


class Choose(ModalScreen[str | None]):
    """Chooses one of several, by its id."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape,q", "dismiss", show=False)]

    def __init__(self, title: str, options: Sequence[tuple[str, str]], begin: int = 0) -> None:
        super().__init__()
        self._title, self._options, self._begin = title, options, begin

    def compose(self) -> ComposeResult:
        options = (Option(Text(text, no_wrap=True), id=id) for id, text in self._options)
        with Vertical(classes="box") as box:
            box.border_title, box.border_subtitle = self._title, "Enter: this one · Esc: back"
            yield OptionList(*options)

    def on_mount(self) -> None:
        self.query_one(OptionList).highlighted = self._begin

    def on_option_list_option_selected(self, event: OptionList.OptionSelected) -> None:
        self.dismiss(event.option.id)


class Task(TextArea):
    """Keys of its screen work only after what was typed before them has arrived."""

    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+e", "screen.editor", show=False)]


class Spawn(ModalScreen[dict[str, str] | None]):
    """A task and its runtime; long tasks are written in an editor. `typed` is as in `Line`."""

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("ctrl+s", "spawn", show=False),
        Binding("ctrl+e", "editor", show=False),
        Binding("escape", "dismiss", show=False),
    ]

    def __init__(self, offered: Offered, task: str = "") -> None:
        super().__init__()
        self._offered, self.typed = offered, task

    def compose(self) -> ComposeResult:
        usable = [(one.name, one.name) for one in self._offered.runtimes if one.problem is None]
        default = self._offered.defaults.runtime
        chosen = default if (default, default) in usable else (usable[0][1] if usable else None)
        with Vertical(classes="box tall") as box:
            box.border_title = "Spawn a builder"
            box.border_subtitle = "^S: spawn · ^E: editor · Tab: runtime · Esc: back"
            yield Task(self.typed, placeholder="What should it do?")
            if chosen is None:
                yield Label("No runtime can be used here: af runtimes")
            else:
                yield Select(usable, value=chosen, allow_blank=False)

    def on_text_area_changed(self, event: TextArea.Changed) -> None:
        self.typed = event.text_area.text

    def action_spawn(self) -> None:
        task = self.query_one(TextArea).text
        if not task.strip():
            self.notify("Say what it should do", severity="warning")
            return
        selects = self.query(Select)
        self.dismiss({"task": task, **({"runtime": str(selects.first().value)} if selects else {})})

    def action_editor(self) -> None:
        area = self.query_one(TextArea)
        try:
            area.text = edit_text(self.app, area.text)
        except AgentFarmError as error:
            self.notify(str(error), severity="error")


TEXT_BOXES = (LineBox, Spawn)

_PRESSED = {"enter": "Enter", "up": "Up", "down": "Down", "left": "Left", "right": "Right", "tab": "Tab"}


class AnswerDialog(ModalScreen[None]):
    """The builder's screen. Its options are keys, and every other key that a dialog takes is passed on.

    Closes when a builder that `asks` stops asking.
    """

    BINDINGS: ClassVar[list[BindingType]] = [Binding("escape", "dismiss", show=False)]

    def __init__(self, root: Path, id: str, asks: Callable[[], str | None]) -> None:
        super().__init__()
        self._root, self._id, self._asks = root, id, asks
        self._question = asks()

    def compose(self) -> ComposeResult:
        with Vertical(classes="box tall") as box:
            box.border_title = f"Answer {self._id}"
            box.border_subtitle = "keys go to it · x: its Esc · Esc: back"
            yield Label(self._question or "", id="question")
            yield VerticalScroll(Static("", id="asked"))

    def on_mount(self) -> None:
        self.run_worker(self._keep_looking(), exclusive=True)

    async def _keep_looking(self) -> None:
        while self._question is None or self._asks() is not None:
            try:
                captured = await ask(self._root, "capture", id=self._id, escapes=True)
                text = Text.from_ansi("\n".join(captured.screen.rstrip().splitlines()[-_TAIL:]), no_wrap=True)
                options = captured.options
            except AgentFarmError as error:
                text, options = Text(str(error)), {}
            self.query_one("#asked", Static).update(text)
            self.query_one(VerticalScroll).call_after_refresh(
                self.query_one(VerticalScroll).scroll_end, animate=False
            )
            keys = " · ".join(f"{key}: {word}" for key, word in options.items())
            self.query_one("#question", Label).update("\n".join(filter(None, (self._question, keys))))
            await asyncio.sleep(_LOOK_SECONDS)
        self.dismiss()

    async def on_key(self, event: Key) -> None:
        if event.key == "escape":
            return
        event.stop()
        plain = event.character if event.character and event.character.isalnum() else None
        pressed = "Escape" if plain == "x" else _PRESSED.get(event.key) or plain
        if pressed is None:
            return
        try:
            done = await ask(self._root, "send_keys", ids=(self._id,), keys=pressed)
            if done.exit_code:
                self.notify(done.deliveries[0].reason or "not pressed", severity="warning")
        except AgentFarmError as error:
            self.notify(str(error), severity="error")
