"""The app around a screen of keys: it keeps what is typed while a box opens, and passes on bugs."""

from __future__ import annotations

import gc
from typing import ClassVar

from textual.app import App
from textual.binding import Binding, BindingType
from textual.events import Event, Key
from textual.reactive import Reactive
from textual.screen import Screen


class KeyedApp(App[None]):
    CSS_PATH = "board.tcss"
    ENABLE_COMMAND_PALETTE = False
    # the terminal's own colours, light or dark; set later, all styles would be read twice
    theme: Reactive[str] = Reactive("ansi-dark")
    BINDINGS: ClassVar[list[BindingType]] = [Binding("ctrl+c", "quit", show=False, priority=True)]

    def __init__(self, first: Screen[None]) -> None:
        super().__init__()
        gc.freeze()  # otherwise a garbage collection goes through all modules before the first paint
        self.failure: Exception | None = None
        self.is_opening = False
        self._first = first
        self._early: list[Key] = []

    def get_default_screen(self) -> Screen[None]:
        return self._first

    def show(self) -> None:
        """Runs until the person leaves; raises the bug that ended it."""
        self.run()
        if self.failure is not None:
            raise self.failure

    def leave(self) -> None:
        """Back to the screen below, if there is one."""
        if len(self.screen_stack) > 1:
            self.pop_screen()
        else:
            self.exit()

    async def on_event(self, event: Event) -> None:
        """Keys typed while a box is about to open go to the box."""
        if self.is_opening and isinstance(event, Key) and not event.is_forwarded:
            self._early.append(event)
        else:
            await super().on_event(event)

    def has_opened(self, *, takes_early: bool) -> None:
        """Call this when a box is open and takes keys, or when none will open."""
        self.is_opening = False
        for event in self._early if takes_early else ():
            self.post_message(event)
        self._early.clear()

    def _handle_exception(self, error: Exception) -> None:
        """A bug ends the screen; the caller reports it like any other bug."""
        self.failure = self.failure or error
        self.exit()
