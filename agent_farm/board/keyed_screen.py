"""A screen with a table of keys: all are shown, a disabled one says why, and each may open a box."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from rich.cells import cell_len
from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.geometry import Size
from textual.screen import Screen
from textual.widgets import Input, Static

from agent_farm.board.key_table import Key
from agent_farm.board.keyed_app import KeyedApp
from agent_farm.errors import AgentFarmError

SIDEWAYS = 20  # columns that the view scrolls at a time
_ROWS_FOR_ONE = 8  # a row of keys for this many rows of the screen, but always at least two
_OWN = ("press", "move", "go_to", "shift", "page")
_MOVES = {
    "up,k": "move(-1)",
    "down,j": "move(1)",
    "home,g": "go_to(0)",
    "end,G": "go_to(-1)",
    "left": "shift(-1)",
    "right": "shift(1)",
    "pageup": "page(-1)",
    "pagedown": "page(1)",
    "escape": "back",
}


def told_keys(keys: Sequence[Key[Any]], chosen: Any, size: Size) -> Text:
    """Every key, in rows as wide as the screen; a disabled key is dim and in brackets.

    Where there is no room for all words, the last keys before help and quit are shown without theirs. That
    does not depend on what is chosen, so keys keep their places while the cursor moves.
    """
    most = max(2, size.height // _ROWS_FOR_ONE)
    for worded in range(len(keys) - 2, -1, -1):
        bare = keys[worded:-2]
        told = [key.shown if key in bare else f"{key.shown} {key.word}" for key in keys]
        begins = _begins([cell_len(words) + 2 for words in told], size.width)
        if len(begins) <= most:
            break
    text = Text(no_wrap=True)
    for at, (key, words) in enumerate(zip(keys, told, strict=True)):
        enabled = key.refuse(chosen) is None
        part = Text(f" {words} " if enabled else f"({words})")
        part.stylize("bold" if enabled else "dim", 0, len(key.shown) + 1 if enabled else None)
        part.stylize(Style.from_meta({"@click": f"screen.press('{key.keys}')"}))
        text.append("\n" if at in begins[1:] else "").append_text(part)
    return text


def _begins(widths: Sequence[int], width: int) -> list[int]:
    """The indexes of the keys that begin a row."""
    begins, used = [0], 0
    for at, wide in enumerate(widths):
        used += wide
        if used > width and at:
            begins.append(at)
            used = wide
    return begins


def bindings_of(keys: Sequence[Key[Any]]) -> list[BindingType]:
    """The table's keys, and the moves that every screen has.

    They have priority over all widgets, so that keys are handled in order, however fast they are typed.
    """
    actions = {key.keys: f"press('{key.keys}')" for key in keys} | _MOVES
    return [Binding(*one, show=False, priority=True) for one in actions.items()]


class KeyedScreen(Screen[None]):
    """An action is the method `act_NAME`, called at once, or else the method NAME of `acts`, as a task."""

    keys: ClassVar[Sequence[Key[Any]]] = ()
    acts: Any

    def __init__(self, root: Path, called: str) -> None:
        super().__init__()
        self.root, self.called = root, called

    @property
    def keyed(self) -> KeyedApp:
        return cast(KeyedApp, self.app)

    @property
    def chosen(self) -> Any:
        """What the keys act on now."""
        raise NotImplementedError

    def aside(self, act: Callable[[], Awaitable[None]], group: str = "") -> None:
        """Runs `act` as a task and shows its errors. A new task of a `group` cancels the one before."""
        self.run_worker(self._telling(act), group=group, exclusive=bool(group))

    async def _telling(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await act()
        except AgentFarmError as error:
            hint = f"hint: {error.hint}" if error.hint else None
            self.say(error.what, error.why, *error.evidence[:3], hint)

    async def _acting(self, act: Callable[[], Awaitable[None]]) -> None:
        try:
            await self._telling(act)
        finally:
            self.keyed.has_opened(takes_early=False)

    def say(self, *words: str | None) -> None:
        """Shows the result of a key, until the next key."""
        text = "\n".join(word for word in words if word)
        said = self.query_one("#said", Static)
        said.update(Text(text))
        said.set_class(bool(text), "shown")

    def say_keys(self) -> None:
        self.query_one("#keys", Static).update(told_keys(self.keys, self.chosen, self.size))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While an input line has the focus, keys belong to it; Esc leaves it."""
        return not (action in _OWN and isinstance(self.focused, Input))

    def action_press(self, keys: str) -> None:
        key = next(key for key in self.keys if key.keys == keys)
        why = key.refuse(self.chosen)
        self.say(f"{key.word}: {why}" if why else None)
        if why:
            return
        own: Callable[[], None] | None = getattr(self, f"act_{key.action}", None)
        if own is not None:
            own()
            return
        self.keyed.is_opening = key.asks
        self.run_worker(self._acting(partial(getattr(self.acts, key.action), self.chosen)))

    def act_quit(self) -> None:
        self.keyed.leave()
