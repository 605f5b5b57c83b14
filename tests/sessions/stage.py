"""A butler on stage: a real database, and a whole adapter whose every run is scripted by the test."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from agent_farm.launch import Launch
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult, Usage
from agent_farm.server.callers import Tokens
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.runner import Endpoint
from agent_farm.sessions.spawner import Spawner
from tests.sessions.records import Records


@dataclass(frozen=True)
class Call:
    """What one run was given."""

    prompt: str
    system_prompt: str
    server: McpServer
    env: dict[str, str]
    max_turns: int
    model: str | None
    cwd: Path
    config: Path
    config_text: str


@dataclass
class Script:
    """Shared by all workers of one adapter."""

    act: Callable[[Call], Awaitable[RuntimeResult]]
    calls: list[Call] = field(default_factory=list)
    workers: list[int] = field(default_factory=list)
    resets: list[int] = field(default_factory=list)
    alive: list[RuntimeAdapter] = field(default_factory=list)  # so that ids stay distinct


async def say_ok(call: Call) -> RuntimeResult:
    return RuntimeResult(
        output=f"ok: {call.prompt}", usage=Usage(12, 34, 5), cost=0.25, conversation_id="c-1"
    )


class ScriptedAdapter(RuntimeAdapter):
    """A whole adapter that starts nothing."""

    cli = Cli(name="scripted", binary="true", variables=("SCRIPTED_API_KEY",))

    def __init__(self, script: Script) -> None:
        self.script = script

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        return ("scripted",)

    def interactive(self, start: Start) -> Launch:
        raise NotImplementedError

    async def run_headless(self, start: Start) -> RuntimeResult:
        assert start.server is not None
        config = self.build_config_file({start.server.name: start.server}, start.place)
        call = Call(
            prompt=start.prompt or "",
            system_prompt=start.role,
            server=start.server,
            env=dict(start.env),
            max_turns=start.max_turns,
            model=start.model,
            cwd=start.cwd,
            config=config,
            config_text=config.read_text(),
        )
        self.script.calls.append(call)
        self.script.workers.append(id(self))
        return await self.script.act(call)

    def create_worker(self) -> ScriptedAdapter:
        worker = ScriptedAdapter(self.script)
        self.script.alive.append(worker)
        return worker

    async def reset(self) -> None:
        self.script.resets.append(id(self))


@dataclass
class Stage:
    butler: Butler
    database: Database
    spawner: Spawner
    script: Script
    log: SessionLog
    tokens: Tokens

    def records(self) -> list[dict[str, Any]]:
        return Records(self.log).find(limit=0)

    def only_record(self) -> dict[str, Any]:
        (record,) = self.records()
        return Records(self.log).get(record["id"])


def make_stage(
    tmp_path: Path,
    act: Callable[[Call], Awaitable[RuntimeResult]] = say_ok,
    *,
    butler: Butler | None = None,
    port: int = 8001,
    transport: Any = "http",
    environ: Mapping[str, str] | None = None,
) -> Stage:
    """To be called inside a running loop."""
    asyncio.get_running_loop()
    butler = butler or make_butler(tmp_path)
    state = tmp_path / "state"
    database = Database(state / "butler.db")
    script = Script(act)
    env = dict(environ) if environ is not None else {"PATH": "/usr/bin", "HOME": str(tmp_path)}
    tokens = Tokens(state / "runs")
    spawner = Spawner(
        butler,
        ScriptedAdapter(script),
        database,
        Endpoint(port, transport, tokens),
        credentials=CredentialStore(database, env, tmp_path / "key"),
        environ=env,
    )
    return Stage(butler, database, spawner, script, SessionLog(database), tokens)


def make_butler(tmp_path: Path, name: str = "health", claude_md: str = "Be kind.", **fields: Any) -> Butler:
    directory = tmp_path / "roster" / name
    directory.mkdir(parents=True, exist_ok=True)
    (directory / "CLAUDE.md").write_text(claude_md)
    return Butler(name=name, directory=directory, roster=directory.parent, **fields)
