"""A screen whose keys are a table: all of them shown, a disabled one says why, and each may ask in a box."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Any, ClassVar, cast

from rich.style import Style
from rich.text import Text
from textual.binding import Binding, BindingType
from textual.screen import Screen
from textual.widgets import Input, Static

from agent_farm.board.key_table import Key
from agent_farm.board.keyed_app import KeyedApp
from agent_farm.errors import AgentFarmError

_MARGINS = 2
_OWN = ("press", "move", "go_to", "scroll", "shift", "page")


class KeyLine(Static):
    """Every key; one that does nothing now stands in brackets and is dim."""

    def show(self, keys: Sequence[Key[Any]], chosen: Any, width: int) -> None:
        text, used = Text(no_wrap=True), 0
        for key in keys:
            part = _part(key, enabled=key.refuse(chosen) is None)
            if used and used + part.cell_len > width:
                text, used = text.append("\n"), 0
            text.append_text(part).append("  ")
            used += part.cell_len + 2
        self.update(text)


def _part(key: Key[Any], *, enabled: bool) -> Text:
    part = Text(f"{key.shown} {key.word}" if enabled else f"({key.shown} {key.word})")
    part.stylize("bold" if enabled else "dim", 0, len(key.shown) if enabled else None)
    part.stylize(Style.from_meta({"@click": f"screen.press('{key.keys}')"}))
    return part


def at_once(keys: str, action: str) -> Binding:
    """Before any widget has a look, so that keys do in their order what they do, however fast they come."""
    return Binding(keys, action, show=False, priority=True)


def bindings_of(keys: Sequence[Key[Any]]) -> list[BindingType]:
    moves = (("up,k", "move(-1)"), ("down,j", "move(1)"), ("home,g", "go_to(0)"), ("end,G", "go_to(-1)"))
    return [*(at_once(key.keys, f"press('{key.keys}')") for key in keys), *(at_once(*one) for one in moves)]


class KeyedScreen(Screen[None]):
    """`act_NAME` of a key's action is done at once; else the method of `acts` of that name, on the side."""

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
        """What goes wrong in it is said. The last of a group ends the one before."""
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
        """What came of a key, until the next one."""
        text = "\n".join(word for word in words if word)
        said = self.query_one("#said", Static)
        said.update(Text(text))
        said.set_class(bool(text), "shown")

    def say_keys(self) -> None:
        self.query_one(KeyLine).show(self.keys, self.chosen, self.size.width - _MARGINS)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        """While a line asks for text the keys are its own; Esc leaves it."""
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
