"""The view beside the list: the screen, diff, history or conflicts of the builder under the cursor."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Coroutine
from contextlib import suppress
from pathlib import Path
from typing import Any

from rich.text import Text
from textual.app import ComposeResult
from textual.containers import VerticalScroll
from textual.widgets import Static

from agent_farm.board.verbs_on_a_thread import ask
from agent_farm.cli.cells import counted
from agent_farm.errors import AgentFarmError
from agent_farm.operations.shown import BuilderShown
from agent_farm.printable import printable

VIEWS = ("screen", "diff", "log", "conflicts")
_SOON, _LATER = 0.3, 2.0  # seconds between two looks at a screen, while it changes and while it does not
_SOON_ELSEWHERE = 1.0  # for another machine, where each look is a call
_MOST = 400_000
_STYLES = {"+": "green", "-": "red", "@": "cyan"}


class View(VerticalScroll, can_focus=False):
    """Asks only for what is shown: a screen again and again, the rest when its builder has changed."""

    def __init__(self, root: Path) -> None:
        super().__init__(id="view")
        self.root = root
        self.shown = VIEWS[0]
        self._builder: BuilderShown | None = None
        self._text = Static("", id="view-text")
        self._wanted = asyncio.Event()
        self._moved = asyncio.Event()
        self._drawn: tuple[tuple[str, str], Text] | None = None

    def compose(self) -> ComposeResult:
        yield self._text

    def on_mount(self) -> None:
        self.run_worker(self._keep_looking(), exclusive=True)

    def of(self, builder: BuilderShown | None) -> None:
        before, self._builder = self._builder, builder
        if builder is None or before is None or before.id != builder.id:
            self._moved.set()
        if builder is None or before is None or before != builder:
            self._wanted.set()

    def next(self) -> None:
        self.shown = VIEWS[(VIEWS.index(self.shown) + 1) % len(VIEWS)]
        self._moved.set()
        self.look_again()

    def look_again(self) -> None:
        self._wanted.set()

    async def _keep_looking(self) -> None:
        pause = _SOON
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(pause if self._is_live() else None):
                    await self._wanted.wait()
            self._wanted.clear()
            self._moved.clear()
            changed = await self._look()
            soon = _SOON_ELSEWHERE if self._builder and self._builder.host else _SOON
            pause = soon if changed else max(soon, min(_LATER, pause * 1.5))

    def _is_live(self) -> bool:
        is_seen = bool(self.size.height) and self.screen.is_current
        return self.shown == "screen" and self._builder is not None and is_seen

    async def _look(self) -> bool:
        builder, view = self._builder, self.shown
        if builder is None:
            return self._draw(("", ""), "", Text("No builder. c spawns one."))
        try:
            text = await self._read(builder, view)
        except AgentFarmError as error:
            text = Text("\n".join(filter(None, (error.what, error.why, *error.evidence, error.hint))))
        if text is None or builder is not self._builder or view != self.shown:
            return True  # the cursor has moved on; the builder under it now comes next
        return self._draw((builder.id, view), f" {view}: {builder.id} ", text)

    async def _read(self, builder: BuilderShown, view: str) -> Text | None:
        """None if the cursor moved on before another machine had answered."""
        if builder.host is None:
            return await _READERS[view](self.root, builder)
        tasks = (
            asyncio.create_task(_READERS[view](self.root, builder)),
            asyncio.create_task(self._moved.wait()),
        )
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
            return await tasks[0] if tasks[0].done() else None
        finally:
            for task in tasks:
                task.cancel()

    def _draw(self, place: tuple[str, str], title: str, text: Text) -> bool:
        if (place, text) == self._drawn:
            return False
        moved = self._drawn is None or place != self._drawn[0]
        self._drawn = (place, text)
        self.border_title = title
        self._text.update(text)
        if moved:
            self.scroll_home(animate=False)
        if self.shown in ("screen", "log"):
            self.call_after_refresh(self.scroll_end, animate=False)
        return True


async def _screen(root: Path, builder: BuilderShown) -> Text:
    if builder.status.state in ("stopped", "lost"):
        return Text(f"Its terminal is gone: {builder.status.reason or builder.status.state}.")
    captured = await ask(root, "capture", id=builder.id, escapes=True)
    return Text.from_ansi(captured.screen.rstrip("\n"), no_wrap=True)


async def _diff(root: Path, builder: BuilderShown) -> Text:
    found = await ask(root, "diff", id=builder.id, most=_MOST)
    if not found.diff:
        return Text("Nothing has changed.")
    text = Text(f"{counted(found.files, 'file')}, +{found.added} -{found.deleted}\n\n", no_wrap=True)
    for line in found.diff.splitlines():
        heading = line.startswith(("diff --git", "+++", "---", "index "))
        text.append(f"{printable(line)}\n", "bold" if heading else _STYLES.get(line[:1], ""))
    if found.truncated:
        text.append("… the rest: af diff", "italic")
    return text


async def _log(root: Path, builder: BuilderShown) -> Text:
    found = await ask(root, "logs", id=builder.id, limit=200)
    text = Text(no_wrap=True)
    for event in found.events:
        when = time.strftime("%H:%M:%S", time.localtime(event.at))
        said = f": {event.reason}" if event.reason else ""
        text.append(
            printable(f"{when}  {event.source:8}  {event.state or '':11}  {event.event}{said}") + "\n"
        )
    return text


async def _conflicts(root: Path, builder: BuilderShown) -> Text:
    found = await ask(root, "conflicts")
    text = Text()
    for one in (pair for pair in found.conflicts if builder.id in (pair.one, pair.other)):
        text.append(f"with {printable(one.other if one.one == builder.id else one.one)}\n", "bold")
        text.append("".join(f"  {printable(file)}\n" for file in one.files))
    for pair in (pair for pair in found.unknown if builder.id in (pair.one, pair.other)):
        text.append(f"not compared: {printable(pair.reason)}\n", "italic")
    return (
        text if text.plain else Text("Its committed work conflicts with no other builder, nor with its base.")
    )


_READERS: dict[str, Callable[[Path, BuilderShown], Coroutine[Any, Any, Text]]] = {
    "screen": _screen,
    "diff": _diff,
    "log": _log,
    "conflicts": _conflicts,
}
