"""What the board's keys do to builders, each through the verb that the command line uses too."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from rich.text import Text

from agent_farm.board import leaving
from agent_farm.board.asking_acts import AskingActs
from agent_farm.board.dialogs import AnswerDialog, Choose, Spawn
from agent_farm.board.key_table import MOVES
from agent_farm.cli.cells import counted
from agent_farm.errors import AgentFarmError
from agent_farm.operations.operation import Failure
from agent_farm.operations.prune import Pruned
from agent_farm.operations.shown import BuilderShown
from agent_farm.printable import printable

if TYPE_CHECKING:
    from agent_farm.board.board_screen import BoardScreen

Chosen = Sequence[BuilderShown]
T = TypeVar("T")
Act = Callable[[Chosen], Coroutine[Any, Any, None]]


class Acts(AskingActs):
    screen: BoardScreen
    moves = MOVES
    guide = "docs/board.md"

    def __init__(self, screen: BoardScreen) -> None:
        super().__init__(screen)
        self.task = ""  # the task of a spawn that failed, or that was left with Esc

    async def attach(self, chosen: Chosen) -> None:
        self.screen.say(leaving.attach(self.screen.app, self.screen.root, chosen[0]))

    async def edit(self, chosen: Chosen) -> None:
        leaving.edit(self.screen.app, chosen[0].worktree)

    async def shell(self, chosen: Chosen) -> None:
        leaving.shell(self.screen.app, self.screen.root, chosen[0])

    async def answer(self, chosen: Chosen) -> None:
        id = chosen[0].id

        def asks() -> str | None:
            builder = self.screen.builders.builders.get(id)
            waits = builder is not None and builder.status.state == "waiting"
            return (builder.status.reason or "") if builder and waits else None

        await self._shown(AnswerDialog(self.screen.root, id, asks))

    async def message(self, chosen: Chosen) -> None:
        ids = _ids(chosen)
        if text := await self._written(f"Message to {_names(chosen)}", *ids):
            self.screen.say("Sending …")
            self.left.pop(ids, None)  # the next message may be written while this one is being sent
            try:
                done = await self._ask("send", ids=ids, text=text)
            except BaseException:
                self.left.setdefault(ids, text)
                raise
            if late := tuple(one.id for one in done.deliveries if one.outcome != "submitted"):
                self.left[late] = text
            told = (
                f"{one.id} {one.outcome}" + (f": {one.reason}" if one.reason else "")
                for one in done.deliveries
            )
            self.screen.say(*told)

    async def create(self, chosen: Chosen) -> None:
        box = Spawn(await self._ask("choices"), self.task)
        asked = await self._shown(box)
        self.task = box.typed
        if asked:
            self.screen.say("Spawning …")
            done = await self._ask("spawn", **asked)
            self.task = ""
            self.screen.say(f"{done.builder.id} starts on {done.builder.branch}", *done.notes)
            self.screen.builders.current = done.builder.id

    async def check(self, chosen: Chosen) -> None:
        self.screen.say(f"Checking {_names(chosen)} …")
        done = await self._ask("check", ids=_ids(chosen))
        told = (f"{one.id} {one.state}" + (f": {one.reason}" if one.reason else "") for one in done.builders)
        self.screen.say(*told, *map(_told, done.failed))

    async def land(self, chosen: Chosen) -> None:
        if await self._goes_on_landing():
            return
        text = Text()
        checks: tuple[str, ...] = ()
        ready: list[BuilderShown] = []
        for builder in chosen:
            found = await self._ask("landing", id=builder.id)
            checks = found.checks
            ready += [builder] if found.commits else []
            text.append(f"{printable(found.work)} on {found.into}\n", "bold")
            text.append("".join(f"  {one.sha[:10]} {printable(one.subject)}\n" for one in found.commits))
            if not found.commits:
                text.append("  nothing new\n")
            for file in found.left_behind:
                text.append(f"  stays behind, uncommitted: {printable(file)}\n", "yellow")
        passes = [f"It has to pass: {printable(check)}\n" for check in checks]
        text = Text("".join(passes) or "No check is declared: it is merged as it is.\n") + text
        choices = {"enter": f"land {_names(ready)}"} if ready else {}
        if not await self._confirmed(f"Land {_names(chosen)}", text, choices):
            return
        if checks:
            await self._ask("land", ids=_ids(ready), background=True)
            self.screen.say(f"{_names(ready)} put into the landing queue")
        else:
            self.screen.say("Landing …")
            done = await self._ask("merge", ids=_ids(ready))
            self.screen.say(*(f"{one.id} landed on {one.into}" for one in done.merged), _told(done.failed))

    async def _goes_on_landing(self) -> bool:
        """Offers to resume a stopped landing first: until then nothing can be added to the queue."""
        queue = self.screen.known.landing if self.screen.known else None
        if queue is None or queue.state != "stopped":
            return False
        text = Text("".join(f"{printable(line)}\n" for line in queue.problem))
        text.append("".join(f"  waits: {one.id}\n" for one in queue.waiting))
        choices = {"enter": "go on", "E": "empty the queue"}
        key = await self._confirmed(f"The landing on {queue.into} stopped", text, choices)
        if key == "enter":
            await self._ask("land_continue", background=True)
            self.screen.say("The landing continues")
        elif key == "E":
            await self._ask("land_abort")
            self.screen.say("The landing queue is empty; what has landed stays")
        return True

    async def stop(self, chosen: Chosen) -> None:
        text = Text("Worktree, branch and conversation stay; r resumes it.")
        if await self._confirmed(f"Stop {_names(chosen)}", text, {"enter": "stop"}):
            done = await self._ask("stop", ids=_ids(chosen))
            self.screen.say(
                f"{', '.join(done.stopped)} stopped" if done.stopped else None, *map(_told, done.failed)
            )

    async def resume(self, chosen: Chosen) -> None:
        for builder in chosen:
            await self._ask("resume", id=builder.id)
            self.screen.say(f"{builder.id} goes on")

    async def prune(self, chosen: Chosen) -> None:
        """Shows obstacles first; a removed builder can be restored."""
        ids = _ids(chosen)
        found = await self._ask_prune(ids, dry_run=True)
        text = Text()
        waits = {one.id for one in chosen if one.status.state == "queued"}
        for what, some in (
            ("Waits to start, and has no work yet", [id for id in found.would_remove if id in waits]),
            ("Finished and landed", [id for id in found.would_remove if id not in waits]),
        ):
            text.append(f"{what}: {', '.join(some)}\n" if some else "")
        for refused in found.refused:
            text.append(f"{printable(refused.what)}\n", "bold")
            text.append(
                "".join(f"  {printable(line)}\n" for line in filter(None, (refused.why, *refused.evidence)))
            )
        text.append("\nA removed builder is kept; u brings it back.")
        choices = {"enter": "remove these"} if found.would_remove else {}
        choices |= {"D": "remove anyway"} if found.refused else {}
        key = await self._confirmed(f"Remove {_names(chosen)}", text, choices)
        if key is None:
            return
        self.screen.say("Removing …")
        told = await self._remove(found.would_remove)
        if key == "D":  # only those whose loss was shown
            told += await self._remove([one.id for one in found.refused], discard=True)
        self.screen.say(*told)

    async def _remove(self, ids: Sequence[str], *, discard: bool = False) -> list[str | None]:
        if not ids:
            return []
        done = await self._ask_prune(ids, discard_changes=discard, discard_commits=discard)
        gone = [f"{one.id} removed" for one in done.removed]
        return [
            *gone,
            *(f"{one.id} is no longer waiting" for one in done.forgotten),
            *map(_told, done.refused),
        ]

    async def _ask_prune(self, ids: Sequence[str], **fields: Any) -> Any:
        """Shows a refusal of a single builder like one of several."""
        try:
            return await self._ask("prune", ids=ids, stop=True, **fields)
        except AgentFarmError as error:
            if len(ids) != 1:
                raise
            return Pruned(removed=(), refused=(Failure.of(ids[0], error),))

    async def restore(self, chosen: Chosen) -> None:
        found = await self._ask("removed")
        if not found.removed:
            self.screen.say("There is no removed builder to restore.")
            return
        options = [(f"{one.id}@{one.epoch}", f"{one.id}  {printable(one.title)}") for one in found.removed]
        one = await self._shown(Choose("Bring back", options))
        if one:
            id, _, epoch = one.rpartition("@")
            done = await self._ask("restore", id=id, epoch=int(epoch))
            self.screen.say(f"{done.builder.id} is back; r resumes it")
            self.screen.builders.current = id

    async def copy_path(self, chosen: Chosen) -> None:
        one = chosen[0]
        self._copy(f"{one.host}:{one.worktree}" if one.host else one.worktree)

    async def copy_branch(self, chosen: Chosen) -> None:
        self._copy(chosen[0].branch)

    def _copy(self, text: str) -> None:
        self.screen.app.copy_to_clipboard(text)
        self.screen.say(f"Copied: {text}")


def _ids(chosen: Chosen) -> tuple[str, ...]:
    return tuple(one.id for one in chosen)


def _names(chosen: Chosen) -> str:
    return chosen[0].id if len(chosen) == 1 else counted(len(chosen), "builder")


def _told(failure: Failure | None) -> str | None:
    if failure is None:
        return None
    return " ".join(filter(None, (f"{failure.id}: {failure.what}.", failure.why)))
