"""Sends every change to all open pages; costs nothing while nobody watches."""

from __future__ import annotations

import asyncio
import json
import logging
from collections.abc import AsyncGenerator, Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from agent_farm.disk import is_locked, make_directory
from agent_farm.errors import AgentFarmError, as_farm_error
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.git.ignoring import keep_apart
from agent_farm.live.asking_forge import refreshed
from agent_farm.live.asking_machines import asked_machines
from agent_farm.live.file_watch import EVERYTHING, Changes, Watch, open_watch
from agent_farm.live.open_page import MOST_WAITING, Message, Page
from agent_farm.live.rows import Board, Difference
from agent_farm.server.address import load_address, server_files

T = TypeVar("T")

GATHER_SECONDS = 0.02
PANE_SECONDS = 2.0
GIT_SECONDS = 1.0
GIT_AGAIN_SECONDS = 30.0
FORGE_SECONDS = 120.0
PING_SECONDS = 15.0

_END, _READY, _PING = Message("end"), Message("ready"), Message()

_log = logging.getLogger(__name__)


@dataclass(slots=True)
class Live:
    """One for all pages: the first page starts it, the last one to close ends it."""

    root: Path
    facts: Callable[[Farm], dict[str, Any]]
    _pages: set[Page] = field(default_factory=set)
    _board: Board | None = None
    _task: asyncio.Task[None] | None = None
    _changes: Changes = field(default_factory=Changes)
    _changed: asyncio.Event = field(default_factory=asyncio.Event)
    _git_wanted: set[str] = field(default_factory=set)
    _git_asked: asyncio.Event = field(default_factory=asyncio.Event)
    _thread: ThreadPoolExecutor = field(default_factory=partial(ThreadPoolExecutor, 1, "live"))
    _number: int = 0
    _problem: AgentFarmError | None = None

    async def stream(self) -> AsyncGenerator[Message]:
        """A snapshot, then every change. A reconnect starts with a snapshot again, so nothing is missed."""
        page = Page()
        self._pages.add(page)
        try:
            if self._task is None:
                self._start()
            if self._board is not None:
                yield self._snapshot()
            elif self._problem is not None:
                yield _message("problem", self._number, _told(self._problem))
            while True:
                try:
                    async with asyncio.timeout(PING_SECONDS):
                        message = await page.queue.get()
                except TimeoutError:
                    message = _PING
                if message is _END:
                    return
                if message is _READY or page.is_behind:
                    page.queue, page.is_behind = asyncio.Queue(MOST_WAITING), False
                    message = self._snapshot()
                yield message
        finally:
            self._pages.discard(page)
            if not self._pages:
                self._rest()

    def close(self) -> None:
        self._rest()
        self._thread.shutdown(wait=False, cancel_futures=True)

    def _rest(self) -> None:
        if self._task is not None:
            self._task.cancel()
            self._task = None

    def _start(self) -> None:
        self._board, self._problem = None, None
        self._changes = Changes()
        self._git_wanted.clear()
        self._task = asyncio.create_task(self._run())

    async def _run(self) -> None:
        watch: Watch | None = None
        try:
            board = Board(await self._open_farm())
            git_worktrees = board.farm.repository.common_dir / "worktrees"
            watch = open_watch(board.farm.paths, git_worktrees, self._note)
            await self._look(board.look)
            self._board = board
            self._tell_all(_READY)
            self._want_git(set(board.records))
            self._follow_all(board, watch)
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._follow(board, watch))
                tasks.create_task(self._look_at_panes(board))
                tasks.create_task(self._read_git(board))
                tasks.create_task(self._ask_git_again(board))
                tasks.create_task(self._ask_forge_again(board))
                tasks.create_task(asked_machines(self.root, board.farm.paths.fleet))
        except asyncio.CancelledError:
            raise
        except Exception:
            _log.exception("The live view ended")
            self._task, self._board = None, None  # the pages reconnect, and it starts again
            self._tell_all(_END)
        finally:
            if watch is not None:
                watch.close()

    async def _open_farm(self) -> Farm:
        """Retries: a broken settings file may be mended while the page waits."""
        while True:
            try:
                return await self._aside(partial(_prepared_farm, self.root))
            except (AgentFarmError, OSError) as error:
                self._say_problem(error)
            await asyncio.sleep(PANE_SECONDS)

    def _follow_all(self, board: Board, watch: Watch) -> None:
        """Builders that are followed from now on are read once more, for reports made before."""
        new = watch.follow(board.records)
        if new:
            self._note(Changes(builders=new))

    def _note(self, changes: Changes) -> None:
        self._changes.add(changes)
        self._changed.set()

    async def _follow(self, board: Board, watch: Watch) -> None:
        while True:
            await self._changed.wait()
            await asyncio.sleep(GATHER_SECONDS)  # simultaneous events are sent together
            self._changed.clear()
            changes, self._changes = self._changes, Changes()
            if "server" in changes.parts and _is_stopping(self.root):
                self._tell_all(_END)  # does not delay a server that should end; the pages reconnect
            for part in changes.parts & {"sessions", "landing"}:
                self._tell(part, {})
            if "fleet" in changes.parts:
                self._tell_difference(await self._look(board.look_elsewhere))
            self._want_git(changes.trees)
            if not (changes.builders or changes.parts & {"registry", EVERYTHING}):
                continue
            ids = None if EVERYTHING in changes.parts else changes.builders
            difference = await self._look(partial(board.look, ids))
            self._tell_difference(difference)
            self._follow_all(board, watch)
            self._want_git({str(row["id"]) for row in difference.builders} | changes.builders)

    async def _look_at_panes(self, board: Board) -> None:
        """Asks tmux about all builders at once, because a session that is killed reports nothing.

        Nor does a landing that is killed: it only leaves its lock free.
        """
        landing, landed_before = board.farm.paths.landing_lock, False
        while True:
            await asyncio.sleep(PANE_SECONDS)
            self._tell_difference(await self._look(board.look_at_panes))
            lands = landing.exists() and is_locked(landing)
            if lands != landed_before:
                self._tell("landing", {})
            landed_before = lands

    async def _read_git(self, board: Board) -> None:
        while True:
            await self._git_asked.wait()
            self._git_asked.clear()
            wanted, self._git_wanted = self._git_wanted, set()
            self._tell_difference(await self._look(partial(board.look_at_git, wanted)))
            await asyncio.sleep(GIT_SECONDS)

    async def _ask_git_again(self, board: Board) -> None:
        """Files change without git or af noticing."""
        while True:
            await asyncio.sleep(GIT_AGAIN_SECONDS)
            self._want_git(set(board.records))

    async def _ask_forge_again(self, board: Board) -> None:
        """Asks what has become of open pull requests, apart from all other looks."""
        while True:
            if ids := board.open_requests():
                await refreshed(self.root, ids)
                self._note(Changes(builders=ids))
            await asyncio.sleep(FORGE_SECONDS)

    async def _aside(self, function: Callable[[], T]) -> T:
        """Run on a thread of our own: looks never overlap, and wait for no other work of the server."""
        return await asyncio.get_running_loop().run_in_executor(self._thread, function)

    async def _look(self, look: Callable[[], Difference]) -> Difference:
        """If the farm cannot be read for a moment (a full disk, say), report that instead of failing."""
        try:
            difference = await self._aside(look)
        except (AgentFarmError, OSError) as error:
            self._say_problem(error)
            return Difference()
        if self._problem is not None:
            self._problem = None
            self._tell("problem", {"what": None, "hint": None})
        return difference

    def _say_problem(self, error: AgentFarmError | OSError) -> None:
        known = as_farm_error(error)
        if self._problem is None or self._problem.what != known.what:
            self._problem = known
            self._tell("problem", _told(known))

    def _want_git(self, ids: set[str]) -> None:
        if ids:
            self._git_wanted |= ids
            self._git_asked.set()

    def _tell_difference(self, difference: Difference) -> None:
        if difference:
            self._tell("change", difference.to_json())

    def _tell(self, event: str, document: dict[str, Any]) -> None:
        self._number += 1
        self._tell_all(_message(event, self._number, document))

    def _tell_all(self, message: Message) -> None:
        for page in self._pages:
            page.tell(message)

    def _snapshot(self) -> Message:
        board = self._board
        assert board is not None
        problem = self._problem
        document = {
            "farm": self.facts(board.farm),
            "builders": list(board.rows.values()),
            "problem": _told(problem) if problem else None,
        }
        return _message("snapshot", self._number, document)


def _prepared_farm(root: Path) -> Farm:
    """Creates the directory that is watched, which a farm without builders may lack."""
    farm = open_farm(root)
    farm.settings.require_good()  # otherwise the page would ask for things that are then refused
    keep_apart(farm.repository)
    make_directory(farm.paths.state)
    return farm


def _is_stopping(root: Path) -> bool:
    try:
        address = load_address(server_files(root))
    except AgentFarmError:
        return False
    return address is not None and address.stopping


def _told(problem: AgentFarmError) -> dict[str, Any]:
    return {"what": problem.what, "why": problem.why, "hint": problem.hint}


def _message(event: str, number: int, document: dict[str, Any]) -> Message:
    return Message(event, number, json.dumps({"version": 1, **document}).encode())
