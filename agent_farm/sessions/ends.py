"""Records how sessions ended: if the disk is full, as soon as there is room again; without what no record can
hold."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.records import session_complete, session_complete_without
from agent_farm.sessions.session import Session

RETRY_SECONDS = 5.0

_log = logging.getLogger(__name__)


class Ends:
    """`recorded` is called for each session once its end is recorded."""

    def __init__(self, database: Database, recorded: Callable[[Session], None]) -> None:
        self._database = database
        self._recorded = recorded
        self._unwritten: dict[str, Session] = {}
        self._writing: asyncio.Task[None] | None = None

    @property
    def are_left(self) -> bool:
        return bool(self._unwritten)

    async def write(self, session: Session) -> Session:
        """The session as recorded; if it cannot be recorded yet, its answer is returned all the same."""
        try:
            return await self._write(session)
        except AgentFarmError as error:
            log_failure(_log, f"The end of session {session.id}", error)
            self._unwritten[session.id] = session
            if self._writing is None or self._writing.done():
                self._writing = asyncio.create_task(self._keep_writing())
            return session

    async def write_left(self) -> None:
        """Retry what could not be written."""
        for session in tuple(self._unwritten.values()):
            try:
                await self._write(session)
            except AgentFarmError:  # it was logged already, and would keep the others from being written too
                return
            self._unwritten.pop(session.id, None)

    async def _write(self, session: Session) -> Session:
        try:
            ended = await session_complete(self._database, session)
        except Exception as error:
            if isinstance(error, AgentFarmError) and not isinstance(error, UsageError):
                raise  # the disk's, or another process's: it passes
            log_failure(_log, f"The end of session {session.id}", error)
            ended = await session_complete_without(self._database, session, reason_of(error))
        self._recorded(ended)
        return ended

    async def _keep_writing(self) -> None:
        while self._unwritten:
            await asyncio.sleep(RETRY_SECONDS)
            await self.write_left()
