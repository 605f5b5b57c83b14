"""A session cancelled while its runtime is being started leaves nothing behind, at whatever instant."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.sessions.session import SessionRequest
from tests.server.serving import serving
from tests.sessions.records import open_sessions
from tests.waiting import wait_until


@pytest.mark.slow
def test_no_instant_of_the_start_leaves_an_orphan(repo: Path) -> None:
    async def cancel_at_many_instants() -> None:
        async with serving(repo) as served:
            for step in range(40):
                running = asyncio.Event()
                session = asyncio.create_task(
                    served.running.run(
                        SessionRequest(prompt="[[sleep:300]]"),
                        observer=lambda progress, seen=running: progress.event == "running" and seen.set(),  # type: ignore[misc]
                    )
                )
                await running.wait()
                await asyncio.sleep(step * 0.002)
                session.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await asyncio.wait_for(session, 120)

    asyncio.run(cancel_at_many_instants())
    ids = {record["id"] for record in open_sessions(repo).find(limit=0)}
    assert {record["state"] for record in open_sessions(repo).find(limit=0)} == {"cancelled"}
    assert len(ids) == 40
    wait_until(lambda: not _left(ids), what="the end of all processes")


def _left(ids: set[str]) -> list[str]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AF_SESSION") in ids:
                found.append(" ".join(process.cmdline())[:80])
        except psutil.Error:
            continue
    return found


def test_a_cancellation_while_the_process_is_being_made(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """On a busy machine the process may run long before the call that makes it returns."""
    real = asyncio.create_subprocess_exec
    made = asyncio.Event()

    async def slow(*words: Any, **named: Any) -> Any:
        process = await real(*words, **named)
        made.set()
        await asyncio.sleep(0.5)
        return process

    monkeypatch.setattr(asyncio, "create_subprocess_exec", slow)

    async def cancel_meanwhile() -> set[str]:
        async with serving(repo) as served:
            session = asyncio.create_task(served.running.run(SessionRequest(prompt="[[sleep:300]]")))
            await made.wait()
            session.cancel()
            with pytest.raises(asyncio.CancelledError):
                await asyncio.wait_for(session, 120)
            ids = {record["id"] for record in served.sessions.find()}
            await asyncio.to_thread(wait_until, lambda: not _left(ids), what="the end of all processes")
            return ids

    assert len(asyncio.run(cancel_meanwhile())) == 1
