"""Runs one turn of a session in the background, and records how it ended.

`turn SESSION-DIRECTORY begin|resume DESCRIPTOR`; "alive" goes to the descriptor once the session is locked.
Standard output is adapter.log.
"""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any

from agent_farm.disk import file_lock
from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.executables.adapter_session import AdapterSession, load_session
from agent_farm.runtimes.executables.artifacts import differing_files
from agent_farm.runtimes.executables.shipped import ALSO_ALLOWED, EXECUTABLES
from agent_farm.runtimes.executables.state_file import end_state
from agent_farm.runtimes.external_config import ExternalRuntime, RuntimeFileError, declared_runtimes
from agent_farm.runtimes.result import RuntimeResult

_MOST_TURNS = 100_000  # limited by time instead
_SIGNALS = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP)


def main(directory: Path, verb: str, ready: int) -> int:
    session = load_session(directory)
    root = directory.parents[2]  # of .agent-farm/sessions/ID
    turn = _Turn(session, find_limits(root, session.told.runtime))
    with file_lock(session.alive_lock):  # whoever asks whether it is alive takes the lock for a moment
        failed = asyncio.run(turn.run(verb, ready))
        for number in _SIGNALS:
            signal.signal(number, signal.SIG_IGN)  # the end is recorded in any case
        turn.note_end(failed)
    return int(failed)


def find_limits(root: Path, name: str) -> ExternalRuntime:
    """The entry with that name in agent_runtime.json, else the one whose adapter is a file with that name."""
    try:
        declared = [one for one in declared_runtimes(root).values() if isinstance(one, ExternalRuntime)]
    except RuntimeFileError:
        declared = []
    named = [one for one in declared if one.name == name] or [o for o in declared if o.adapter.name == name]
    return named[0] if named else ExternalRuntime(name, Path(name))


class _Turn:
    def __init__(self, session: AdapterSession, limits: ExternalRuntime) -> None:
        self.session = session
        self._limits = limits
        self._calls_told: set[int] = set()

    async def run(self, verb: str, ready: int) -> bool:
        """Returns whether it failed; a signal ends it, and every process of the CLI."""
        working = asyncio.ensure_future(self._work(verb))
        loop = asyncio.get_running_loop()
        for number in (signal.SIGTERM, signal.SIGINT):
            loop.add_signal_handler(number, working.cancel)
        loop.add_signal_handler(signal.SIGHUP, lambda: None)
        with suppress(BrokenPipeError):  # whoever began it is gone; a second call finds the same session
            os.write(ready, b"alive")
        os.close(ready)
        try:
            result = await working
        except asyncio.CancelledError:
            self._say("ended by a signal")
            return True
        except Exception as error:  # the end is recorded whatever happened
            self._say(f"cannot run: {error!r}")
            return True
        self._tell(result)
        if result.output:
            self._write({"output": result.output})
        self._say(f"failed ({result.failure.kind}): {result.error}" if result.failure else "completed")
        return not result.success

    async def _work(self, verb: str) -> RuntimeResult:
        session, minutes = self.session, self._limits.timeout_minutes
        self._say(
            f"{EXECUTABLES[session.told.runtime]} {verb}, at most {minutes:g} minutes (timeout_minutes)"
        )
        self._try("note that it is at work", lambda: self._note(status="active"))
        return await get_adapter(EXECUTABLES[session.told.runtime]).invoke(
            os.fsdecode(session.prompt_file.read_bytes()),
            "",
            _farms_server(),
            os.environ,
            max_turns=_MOST_TURNS,
            runtime_args=_words_of(session.told.runtime),
            cwd=session.told.cwd,
            timeout=minutes * 60,
            conversation_id=session.told.conversation,
            resume=verb == "resume",
            home=session.directory / "home",
            on_progress=self._tell,
        )

    def _tell(self, result: RuntimeResult) -> None:
        """Log what is new in a result, and record the conversation as soon as it is known."""
        conversation = result.conversation_id
        if conversation and conversation != self.session.told.conversation:
            self._try("keep the conversation's id", lambda: self._note(conversation=conversation))
        for number, call in enumerate(result.tool_calls):
            if call.result is not None and number not in self._calls_told:
                self._calls_told.add(number)
                self._write({"tool": call.name, "input": call.input, "is_error": call.is_error})

    def note_end(self, failed: bool) -> None:
        """Attempts every step, whichever fail; the outcome is written last, to show that all are done."""
        session, told, artifacts = self.session, self.session.told, self._artifacts()
        self._try(
            "write the state",
            lambda: end_state(told.state, told.brief, failed=failed, artifacts=artifacts),
        )
        if self._limits.cleanup:
            self._try("clean up", lambda: session.prompt_file.unlink(missing_ok=True))
        self._try("note how it ended", lambda: self._note(status="failed" if failed else "completed"))

    def _note(self, **facts: str) -> None:
        self.session = self.session.changed(**facts)

    def _artifacts(self) -> list[str]:
        told = self.session.told
        if told.base is None:
            return []
        aside = told.state.parent.glob(f"{told.state.name}.damaged*")
        try:
            made = differing_files(told.cwd, told.base, [told.brief, told.state, *aside])
        except OSError as error:
            self._say(f"artifacts are not known: {error}")
            return []
        return [name for name in made if name not in told.before]

    def _try(self, what: str, step: Callable[[], object]) -> None:
        try:
            step()
        except Exception as error:
            self._say(f"cannot {what}: {error}")

    def _say(self, message: str) -> None:
        self._write({"adapter": message})

    def _write(self, facts: Mapping[str, object]) -> None:
        """Never fails: a turn must not end because nothing more can be logged."""
        line = json.dumps({"at": time.strftime("%Y-%m-%dT%H:%M:%S%z"), **facts}, default=str)
        with suppress(OSError):
            os.write(sys.stdout.fileno(), f"{line}\n".encode())


def _farms_server() -> dict[str, Mapping[str, object]]:
    """The farm's server, which AF_MCP_CONFIG names."""
    token = os.environ.get("AF_MCP_TOKEN")
    servers = _servers_in(os.environ.get("AF_MCP_CONFIG"))
    return {name: {"url": one["url"], "type": one["type"], "token": token} for name, one in servers.items()}


def _words_of(name: str) -> tuple[str, ...]:
    """claude uses the project's own servers if the farm gives it none."""
    own = _servers_in(".mcp.json") if name == "claude-mcp" and "AF_MCP_CONFIG" not in os.environ else {}
    more = ("--mcp-config", ".mcp.json", "--allowedTools", *(f"mcp__{one}" for one in own)) if own else ()
    return (*ALSO_ALLOWED.get(name, ()), *more)


def _servers_in(file: str | None) -> dict[str, Any]:
    """The servers in a file in Claude's format; none if it cannot be read."""
    try:
        servers = json.loads(Path(file).read_bytes())["mcpServers"] if file else {}
    except (OSError, ValueError, KeyError, TypeError):
        return {}
    return servers if isinstance(servers, dict) else {}


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3])))
