"""One run of a runtime: its prompt, its environment, its locked MCP server, and what came of it."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

from agent_farm.disk import make_directory
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.result import Failure, RuntimeResult, Usage, failure_of
from agent_farm.sessions import memory, telemetry
from agent_farm.sessions.butlers import Butler
from agent_farm.sessions.credentials import CredentialStore
from agent_farm.sessions.database import Database
from agent_farm.sessions.failures import log_failure, reason_of
from agent_farm.sessions.finishing import finished_result
from agent_farm.sessions.order import Endpoint, SessionOrder
from agent_farm.sessions.reach import about_checkout, session_bounds
from agent_farm.sessions.readable import readable
from agent_farm.sessions.records import Completion, call_json, conversation_home
from agent_farm.sessions.reporting import reporting
from agent_farm.sessions.session_record import SessionRecord
from agent_farm.sessions.system_prompt import compose_system_prompt

RESET_SECONDS = 10.0


@dataclass(frozen=True, slots=True)
class SessionRunner:
    butler: Butler
    database: Database
    endpoint: Endpoint
    credentials: CredentialStore
    environ: Mapping[str, str]

    async def run(self, order: SessionOrder, record: SessionRecord) -> Completion:
        """How the session ended. Only cancellation is raised: every other failure is an answer."""
        worker = order.adapter.create_worker()
        began = time.monotonic()
        try:
            result = await self._invoke(order, worker, record)
        except asyncio.CancelledError:
            await finished_result(self._reset(worker))
            raise
        except Exception as error:
            await finished_result(self._reset(worker))
            log_failure(_logger(), order.session_id, error)
            return Completion(
                state="failed",
                success=False,
                error=reason_of(error),
                failure=failure_of(error).kind,
                duration=time.monotonic() - began,
            )
        seconds = time.monotonic() - began
        # It has ended: a cancellation comes too late to change how.
        await finished_result(self._conclude(order, worker, result))
        return completion_of(result, seconds)

    async def _conclude(self, order: SessionOrder, worker: RuntimeAdapter, result: RuntimeResult) -> None:
        if not result.success:
            telemetry.mark_failed(result.error or "failed")
            await self._reset(worker)
        elif self.butler.memory:
            await memory.store_session_episode(
                self.database, self.butler.name, order.session_id, order.prompt, result.output
            )

    async def _invoke(
        self, order: SessionOrder, worker: RuntimeAdapter, record: SessionRecord
    ) -> RuntimeResult:
        system_prompt = await self._system_prompt(order, worker)
        token = self._token(order.session_id)
        options, resumed = order.options, order.options.resumed or {}
        home = conversation_home(self.database.path.parent, order.home)
        await self.database.run(make_directory, home)
        servers = self.endpoint.servers(self.butler.name, order.session_id, token)
        try:
            with telemetry.span("runtime.invoke", runtime=worker.name, session_id=order.session_id):
                env = await self.database.run(self.environment, order, telemetry.current_trace())
                bounds = options.bounds or session_bounds(self.butler, order.cwd)
                async with reporting(record) as on_progress:
                    return await worker.invoke(
                        order.whole_prompt,
                        system_prompt,
                        servers,
                        env,
                        max_turns=order.max_turns,
                        model=order.model,
                        runtime_args=options.runtime_args,
                        cwd=order.cwd,
                        timeout=options.timeout or self.butler.session_timeout,
                        permissions=options.permissions,
                        conversation_id=resumed.get("conversation_id"),
                        resume=bool(resumed),
                        home=home,
                        command=options.command,
                        bounds=bounds,
                        on_progress=on_progress,
                    )
        finally:
            with suppress(OSError):  # most runtimes keep their conversations elsewhere
                home.rmdir()
            if self.endpoint.tokens:
                self.endpoint.tokens.revoke_session(order.session_id)

    def _token(self, session_id: str) -> str | None:
        return self.endpoint.tokens.mint_for_session(session_id) if self.endpoint.tokens else None

    async def _system_prompt(self, order: SessionOrder, worker: RuntimeAdapter) -> str:
        recalled = None
        if self.butler.memory:
            recalled = await memory.fetch_memory_context(self.database, self.butler.name, order.prompt)
        return await self.database.run(self._compose, order, worker, recalled)

    def _compose(self, order: SessionOrder, worker: RuntimeAdapter, recalled: str | None) -> str:
        text = worker.parse_system_prompt_file(self.butler.directory)
        composed = compose_system_prompt(text, self.butler.roster, recalled)
        place, bounds = order.options.checkout, order.options.bounds
        if place and bounds and bounds.reads and worker.cli.reads_beside:
            composed = "\n\n".join([*([composed] if composed else []), about_checkout(place)])
        return composed

    def environment(self, order: SessionOrder, trace: telemetry.Trace | None) -> dict[str, str]:
        """What the runtime gets, by name; raises MissingVariable when a required one is not set."""
        butler = self.butler
        cli, declared = order.adapter.cli, (*butler.optional_env, *butler.module_credentials)
        stored = self.credentials.lookup_all({*cli.every_variable, *declared, *butler.required_env})
        source = {name: value for name, value in self.environ.items() if name != "TRACEPARENT"} | stored
        keys = cli.own_variables(source, order.model)
        env = allowed_environment(source, key_names=keys, declared=declared, required=butler.required_env)
        env |= {"AF_SESSION": order.session_id, "AF_BUTLER": butler.name}
        if trace:
            env["TRACEPARENT"] = trace.traceparent
        return env

    async def _reset(self, worker: RuntimeAdapter) -> None:
        try:
            async with asyncio.timeout(RESET_SECONDS):
                await worker.reset()
        except Exception as error:
            log_failure(_logger(), worker.name, error)


def completion_of(result: RuntimeResult, seconds: float | None) -> Completion:
    """Tokens that a failed run did not tell are unknown, not none."""
    usage = result.usage
    is_told = result.success or usage != Usage()
    return Completion(
        state="completed" if result.success else "failed",
        success=result.success,
        output=readable(result.output),
        tool_calls=tuple(call_json(call) for call in result.tool_calls),
        error=readable(result.error),
        duration=seconds,
        input_tokens=usage.input_tokens if is_told else None,
        output_tokens=usage.output_tokens if is_told else None,
        cached_tokens=usage.cache_read_tokens if is_told else None,
        cost=result.cost,
        conversation_id=result.conversation_id,
        failure=result.failure.kind if result.failure else None,
    )


def cancelled_completion(partial: RuntimeResult, reason: str) -> Completion:
    """With what it had told until then."""
    told = completion_of(replace(partial, failure=Failure("killed", reason)), None)
    return replace(told, state="cancelled", success=False, error=reason, failure=None)


def _logger() -> Any:
    import logging

    return logging.getLogger(__name__)
