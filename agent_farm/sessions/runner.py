"""Runs a runtime for one session: its prompt, its environment, its locked MCP server, and the result."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec

from agent_farm.disk import make_directory
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.mcp_config import Transport
from agent_farm.runtimes.result import Failure, OnProgress, RuntimeResult, ToolCall, Usage, failure_of
from agent_farm.sessions import memory, telemetry
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, readable, reason_of
from agent_farm.sessions.reach import about_checkout, session_bounds
from agent_farm.sessions.records import session_progress
from agent_farm.sessions.retention import conversation_home
from agent_farm.sessions.runtime_choice import Choice
from agent_farm.sessions.session import Session
from agent_farm.sessions.system_prompt import compose_system_prompt
from agent_farm.sessions.tool_calls import call_json
from agent_farm.uncancelled import finished_result

if TYPE_CHECKING:
    from agent_farm.server.callers import Tokens

RESET_SECONDS = 10.0
PROGRESS_SECONDS = 0.7
KEPT_CHARACTERS = 2000  # of a tool's result, until the session has ended

_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Endpoint:
    """The butler's own MCP server, the only one that its sessions know."""

    port: int
    transport: Transport = "http"
    tokens: Tokens | None = None

    def servers(self, name: str, session_id: str, token: str | None) -> dict[str, dict[str, object]]:
        path = "sse" if self.transport == "sse" else "mcp"
        server: dict[str, object] = {
            "url": f"http://localhost:{self.port}/{path}?runtime_session_id={session_id}",
            "type": self.transport,
        }
        if token:
            server["token"] = token
        return {name: server}


@dataclass(frozen=True, slots=True)
class SessionRunner:
    butler: Butler
    database: Database
    endpoint: Endpoint
    credentials: CredentialStore
    environ: Mapping[str, str]

    async def run(self, session: Session, choice: Choice) -> Session:
        """The session as it ended. Only cancellation is raised; every other failure is in the session."""
        worker = choice.adapter.create_worker()
        began = time.monotonic()
        try:
            result = await self._invoke(session, choice, worker)
        except asyncio.CancelledError:
            await finished_result(self._reset(worker))
            raise
        except Exception as error:
            await finished_result(self._reset(worker))
            log_failure(_log, session.id, error)
            seconds = time.monotonic() - began
            return msgspec.structs.replace(failed(session, error), duration=seconds)
        seconds = time.monotonic() - began
        # It has ended, so a cancellation can no longer change how.
        await finished_result(self._conclude(session, worker, result))
        return msgspec.structs.replace(ended(session, result), duration=seconds)

    async def _conclude(self, session: Session, worker: RuntimeAdapter, result: RuntimeResult) -> None:
        if not result.success:
            telemetry.mark_failed(result.error or "failed")
            await self._reset(worker)
        elif self.butler.memory:
            await memory.store_session_episode(
                self.database, self.butler.name, session.id, session.prompt, result.output
            )

    def _asked(self, session: Session, worker: RuntimeAdapter) -> dict[str, str | None]:
        """Attributes of an invoked agent, as named by OpenTelemetry."""
        return {
            "gen_ai.operation.name": "invoke_agent",
            "gen_ai.agent.name": self.butler.name,
            "gen_ai.provider.name": worker.cli.provider or worker.name,
            "gen_ai.request.model": session.model,
        }

    async def _invoke(self, session: Session, choice: Choice, worker: RuntimeAdapter) -> RuntimeResult:
        recalled = None
        if self.butler.memory:
            recalled = await memory.fetch_memory_context(self.database, self.butler.name, session.prompt)
        system_prompt = await self.database.run(self._compose, choice, worker, recalled)
        tokens = self.endpoint.tokens
        token = tokens.mint_for_session(session.id, self.butler.name) if tokens else None
        home = conversation_home(self.database.path.parent, session.home or session.id)
        await self.database.run(make_directory, home)
        cwd = Path(session.cwd or self.butler.directory)
        try:
            with telemetry.span("runtime.invoke", runtime=worker.name, session_id=session.id):
                telemetry.note(self._asked(session, worker))
                env = await self.database.run(self.environment, session, choice, telemetry.current_trace())
                async with self._reporting(session) as on_progress:
                    result = await worker.invoke(
                        session.whole_prompt,
                        system_prompt,
                        self.endpoint.servers(self.butler.name, session.id, token),
                        env,
                        max_turns=session.max_turns,
                        model=session.model,
                        runtime_args=choice.runtime_args,
                        cwd=cwd,
                        timeout=session.timeout or self.butler.session_timeout,
                        permissions=session.permissions or "edit",
                        conversation_id=choice.conversation_id,
                        resume=choice.conversation_id is not None,
                        home=home,
                        command=choice.command,
                        bounds=choice.bounds or session_bounds(self.butler, cwd),
                        on_progress=on_progress,
                    )
                telemetry.note(_used(result))
                return result
        finally:
            with suppress(OSError):  # most runtimes keep their conversations elsewhere
                home.rmdir()
            if tokens:
                tokens.revoke_session(session.id)

    def _compose(self, choice: Choice, worker: RuntimeAdapter, recalled: str | None) -> str:
        text = worker.parse_system_prompt_file(self.butler.directory)
        composed = compose_system_prompt(text, self.butler.roster, recalled)
        if choice.checkout and choice.bounds and choice.bounds.reads and worker.cli.reads_beside:
            composed = "\n\n".join([*([composed] if composed else []), about_checkout(choice.checkout)])
        return composed

    def environment(self, session: Session, choice: Choice, trace: telemetry.Trace | None) -> dict[str, str]:
        """The variables that the runtime gets; raises MissingVariable if a required one is not set.

        A stored value takes precedence over the caller's shell, and that over the server's environment.
        """
        butler, cli = self.butler, choice.adapter.cli
        declared = (*butler.optional_env, *butler.module_credentials)
        stored = self.credentials.lookup_all({*cli.every_variable, *declared, *butler.required_env})
        source = {**self.environ, **choice.environ, **stored}
        source.pop("TRACEPARENT", None)
        keys = cli.own_variables(source, session.model)
        env = allowed_environment(source, key_names=keys, declared=declared, required=butler.required_env)
        env |= {"AF_SESSION": session.id, "AF_BUTLER": butler.name}
        if trace:
            env["TRACEPARENT"] = trace.traceparent
        return env

    def keys(self, session: Session, choice: Choice) -> dict[str, str]:
        """The variables that another machine needs from here in order to run the session."""
        butler, cli = self.butler, choice.adapter.cli
        declared = {*butler.optional_env, *butler.module_credentials, *butler.required_env}
        stored = self.credentials.lookup_all({*cli.every_variable, *declared})
        source = {**self.environ, **choice.environ, **stored}
        names = {*declared, *cli.own_variables(source, session.model)}
        return {name: source[name] for name in sorted(names) if source.get(name)}

    async def _reset(self, worker: RuntimeAdapter) -> None:
        try:
            async with asyncio.timeout(RESET_SECONDS):
                await worker.reset()
        except Exception as error:
            log_failure(_log, worker.name, error)

    @asynccontextmanager
    async def _reporting(self, session: Session) -> AsyncIterator[OnProgress]:
        """Records progress now and then; the newest result includes everything before it."""
        newest: list[RuntimeResult] = []
        came = asyncio.Event()

        def take(result: RuntimeResult) -> None:
            newest[:] = [result]
            came.set()

        async def write() -> None:
            while True:
                await came.wait()
                came.clear()
                try:
                    calls = [call_json(_shortened(call)) for call in newest[0].tool_calls]
                    await session_progress(self.database, session.id, newest[0].output, calls)
                except Exception as error:  # it is only progress: the result must not be lost with it
                    log_failure(_log, session.id, error)
                await asyncio.sleep(PROGRESS_SECONDS)

        writer = asyncio.create_task(write())
        try:
            yield take
        finally:
            writer.cancel()
            with suppress(asyncio.CancelledError):
                await writer


def _used(result: RuntimeResult) -> dict[str, str | int | None]:
    """OpenTelemetry counts tokens read from or written to a cache as input."""
    told: dict[str, str | int | None] = {"gen_ai.conversation.id": result.conversation_id}
    if usage := result.usage:
        cached = usage.cache_read_tokens + usage.cache_write_tokens
        told["gen_ai.usage.input_tokens"] = usage.input_tokens + cached
        told["gen_ai.usage.cache_read.input_tokens"] = usage.cache_read_tokens
        told["gen_ai.usage.output_tokens"] = usage.output_tokens
    return told


def ended(session: Session, result: RuntimeResult) -> Session:
    """If a failed run reported no tokens, their number is unknown, not zero."""
    usage = result.usage
    is_told = result.success or usage != Usage()
    return msgspec.structs.replace(
        session,
        state="completed" if result.success else "failed",
        success=result.success,
        output=readable(result.output),
        tool_calls=[call_json(call) for call in result.tool_calls],
        error=readable(result.error),
        input_tokens=usage.input_tokens if is_told else None,
        output_tokens=usage.output_tokens if is_told else None,
        cached_tokens=usage.cache_read_tokens if is_told else None,
        cost=result.cost,
        conversation_id=result.conversation_id,
        failure=result.failure.kind if result.failure else None,
    )


def failed(session: Session, error: Exception) -> Session:
    return msgspec.structs.replace(
        session, state="failed", success=False, error=reason_of(error), failure=failure_of(error).kind
    )


def cancelled(session: Session, partial: RuntimeResult, reason: str) -> Session:
    """The session with what it had reported until then."""
    told = ended(session, replace(partial, failure=Failure("killed", reason)))
    return msgspec.structs.replace(told, state="cancelled", success=False, error=reason, failure=None)


def _shortened(call: ToolCall) -> ToolCall:
    return replace(call, result=call.result[:KEPT_CHARACTERS]) if call.result else call
