"""What the acts of all screens share: opening a box, calling a verb, showing evidence before a yes."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text
from textual.screen import ModalScreen

from agent_farm.board.dialogs import TEXT_BOXES, Confirm, LineBox
from agent_farm.board.verbs_on_a_thread import ask
from agent_farm.errors import ConsentNeeded
from agent_farm.printable import printable

if TYPE_CHECKING:
    from agent_farm.board.keyed_screen import KeyedScreen

T = TypeVar("T")


class AskingActs:
    moves: ClassVar[str]
    guide: ClassVar[str]

    def __init__(self, screen: KeyedScreen) -> None:
        self.screen = screen
        self.left: dict[tuple[str, ...], str] = {}  # text that was typed but not sent, by what it was for

    async def _shown(self, box: ModalScreen[T]) -> T | None:
        """Keys typed from now on go to the box; a question accepts an answer only once it can be read."""
        self.screen.keyed.is_opening = True
        box.call_later(partial(self.screen.keyed.has_opened, takes_early=isinstance(box, TEXT_BOXES)))
        return await self.screen.app.push_screen_wait(box)

    async def _written(self, title: str, *about: str) -> str | None:
        """One line of text. Text that was left with Esc or could not be sent is offered again next time."""
        box = LineBox(title, self.left.get(about, ""))
        text = await self._shown(box)
        self.left[about] = box.typed
        return text if text and text.strip() else None

    async def _ask(self, verb: str, **fields: Any) -> Any:
        while True:
            try:
                return await ask(self.screen.root, verb, **fields)
            except ConsentNeeded as error:
                evidence = Text("\n".join(printable(line) for line in ("Read it first:", *error.evidence)))
                agree = {"Y": "agree to this"}
                if not (error.consent and await self._confirmed(error.what, evidence, agree)):
                    raise
                fields["yes"] = error.consent

    async def help(self, chosen: object) -> None:
        keys = Table.grid(padding=(0, 2, 0, 0))
        for key in self.screen.keys:
            keys.add_row(Text(key.shown, "bold"), key.word, key.help)
        text = Text(f"\n{self.moves}\n\nGuide: {self.guide} · af COMMAND --help")
        await self._confirmed("Keys", Group(keys, text), {})

    async def _confirmed(self, title: str, evidence: RenderableType, choices: dict[str, str]) -> str | None:
        return await self._shown(Confirm(title, evidence, choices))
