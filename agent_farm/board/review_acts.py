"""What the keys of the review do, each through the verb that the command line uses too."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from rich.text import Text

from agent_farm.board import leaving
from agent_farm.board.asking_acts import AskingActs
from agent_farm.board.dialogs import Choose
from agent_farm.board.review_keys import REVIEW_MOVES, Here
from agent_farm.cli.cells import counted
from agent_farm.cli.review_lines import evidence
from agent_farm.operations.review_comment import message_of
from agent_farm.printable import printable
from agent_farm.review.diff_as_read import FileRead, LineRead

if TYPE_CHECKING:
    from agent_farm.board.review_screen import ReviewScreen


class ReviewActs(AskingActs):
    screen: ReviewScreen
    moves = REVIEW_MOVES
    guide = "docs/review.md"

    async def next(self, here: Here) -> None:
        await self._go(self.screen.place + 1, "It is the last result. l lists all.")

    async def before(self, here: Here) -> None:
        await self._go(self.screen.place - 1, "It is the first result.")

    async def _go(self, place: int, if_none: str) -> None:
        if 0 <= place < len(self.screen.items):
            await self.screen.open(place)
        else:
            self.screen.say(if_none)

    async def whole(self, here: Here) -> None:
        self.screen.is_whole = not self.screen.is_whole
        await self.screen.again()

    async def list(self, here: Here) -> None:
        options = [(item.id, _option(item)) for item in self.screen.items]
        chosen = await self._shown(Choose("Results, riskiest first", options, self.screen.place))
        if chosen:
            await self.screen.open(next(at for at, item in enumerate(self.screen.items) if item.id == chosen))

    async def read_hunk(self, here: Here) -> None:
        """Mark the hunk as read. In the view of everything, a hunk that was read becomes unread."""
        file, row = _file(here), here.rows[-1]
        hunk = file.hunks[row.hunk]
        later = [one.id for one in file.hunks[row.hunk + 1 :] if one.unread]
        later += [one.id for other in _shown(here).files[row.file + 1 :] for one in other.hunks if one.unread]
        await self._mark(here, file=file.path, hunk=hunk.id, unread=not hunk.unread)
        await self.screen.again(hunk=later[0] if later and hunk.unread else hunk.id)

    async def read_file(self, here: Here) -> None:
        file, place = _file(here), here.rows[-1].file
        later = [one.id for other in _shown(here).files[place + 1 :] for one in other.hunks[:1]]
        await self._mark(here, file=file.path, unread=not file.unread)
        await self.screen.again(hunk=later[0] if later else None)

    async def read_all(self, here: Here) -> None:
        await self._mark(here)
        self.screen.run_worker(
            self.screen.again() if self.screen.place + 1 >= len(self.screen.items) else self._on()
        )

    async def _on(self) -> None:
        await self.screen.open(self.screen.place + 1)
        self.screen.count_again()

    async def _mark(self, here: Here, **what: Any) -> None:
        await self._ask("review_mark", id=_shown(here).id, tip=_shown(here).tip, **what)
        self.screen.changed.append(_shown(here).id)

    async def comment(self, here: Here) -> None:
        place = _place(here)
        where = f"{place['file']}:{place['first']}" if place else "all of it"
        if place and place["last"] > place["first"]:
            where += f"-{place['last']}"
        about = (_shown(here).id, where)
        if text := await self._written(f"Comment on {printable(where)}", *about):
            await self._ask("review_comment", id=_shown(here).id, tip=_shown(here).tip, text=text, **place)
            self.left.pop(about, None)
            await self.screen.again()
            self.screen.say("Drafted. s sends all drafts as one message.")

    async def send(self, here: Here) -> None:
        drafts = [one for one in _shown(here).comments if one.delivery == "draft"]
        text = Text(printable(message_of(drafts)))
        if await self._confirmed(f"Send to {_shown(here).id}", text, {"enter": "send"}):
            self.screen.say("Sending …")
            done = await self._ask("review_send", id=_shown(here).id)
            await self.screen.again()
            if done.delivery:
                why = f": {done.delivery.reason}" if done.delivery.reason else ""
                self.screen.say(f"{done.id} {done.delivery.outcome}{why}", *done.delivery.hints)

    async def approve(self, here: Here) -> None:
        shown = _shown(here)
        text = Text()
        for line, style in evidence(shown):
            text.append(f"{printable(line)}\n", style or "")
        unread = sum(file.unread for file in shown.files)
        if unread:
            are = "is" if unread == 1 else "are"
            text.append(f"{counted(unread, 'changed line')} {are} unread.\n", "yellow")
        text.append("\nIt goes into the landing queue; its checks run before it lands.")
        if await self._confirmed(f"Approve {shown.id}", text, {"enter": "approve"}):
            self.screen.say("Approving …")
            await self._ask("review_decide", id=shown.id, tip=shown.tip, decision="approve")
            await self._decided(shown.id, f"{shown.id} is in the landing queue")

    async def reject(self, here: Here) -> None:
        title = f"Reason why {_shown(here).id} should not land; its builder is told"
        about = (_shown(here).id, "rejected")
        if reason := await self._written(title, *about):
            self.screen.say("Rejecting …")
            done = await self._ask(
                "review_decide", id=_shown(here).id, tip=_shown(here).tip, decision="reject", reason=reason
            )
            self.left.pop(about, None)
            sent = done.sent.delivery if done.sent else None
            told = f"; its message was {sent.outcome}" if sent else ""
            await self._decided(_shown(here).id, f"{_shown(here).id} is rejected{told}")

    async def _decided(self, id: str, said: str) -> None:
        self.screen.changed.append(id)
        if self.screen.place + 1 < len(self.screen.items):
            await self._on()
        else:
            await self.screen.again()
        self.screen.say(said)

    async def undo(self, here: Here) -> None:
        id = self.screen.changed.pop() if self.screen.changed else _shown(here).id
        done = await self._ask("review_decide", id=id, decision="undo")
        place = next((at for at, item in enumerate(self.screen.items) if item.id == id), self.screen.place)
        if place != self.screen.place:
            await self.screen.open(place)
        await self.screen.again()
        self.screen.say(f"{id}: undone: {done.undone}")

    async def edit(self, here: Here) -> None:
        builder = await self._ask("path", id=_shown(here).id)
        leaving.edit(self.screen.app, builder.path)


def _option(item: Any) -> str:
    return printable(f"{item.risk:>4}  {item.id}  {item.progress}  {' '.join(item.title.split())}")


def _shown(here: Here) -> Any:
    assert here.shown is not None  # the key table has made sure of it
    return here.shown


def _file(here: Here) -> FileRead:
    file: FileRead = _shown(here).files[here.rows[-1].file]
    return file


def _place(here: Here) -> dict[str, Any]:
    """The lines in the range, with their present numbers if there are any, else with the old ones."""
    rows = [row for row in here.rows if row.kind == "line" and row.file == here.rows[-1].file]
    lines: list[LineRead] = [line for row in rows for line in (row.left, row.right) if line and not line.gone]
    now = [line.new for line in lines if line.new and line.sign != "-"]
    old = [line.old for line in lines if line.old and line.sign == "-"]
    if not now and not old:
        return {}
    file, numbers = _file(here), now or old
    where = file.path if now else file.former
    return {"file": where, "side": "new" if now else "old", "first": min(numbers), "last": max(numbers)}
