"""One turn: a prompt comes in, its directives are carried out, an answer comes out."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

from agent_farm.runtimes.demo_agent.directives import Directive, find_directives
from agent_farm.runtimes.demo_agent.mcp_client import McpError, call_tool
from agent_farm.runtimes.demo_agent.work import Refused, commit_file, write_file

_MOST_READ = 20_000


class Door(Protocol):
    """How a turn is seen and answered: a terminal, or lines of JSON."""

    def step(self, text: str) -> None: ...
    def pause(self, seconds: float) -> None: ...
    def ask(self, question: str) -> bool: ...
    def turn(self) -> None: ...
    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None: ...


class TurnFailed(Exception):
    """The model's API failed, as far as the demo agent is concerned."""


class McpUnreachable(TurnFailed):
    pass


class Leave(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


@dataclass(slots=True)
class Turn:
    door: Door
    cwd: Path
    permissions: str
    mcp_config: Path | None
    commits: bool
    message: str
    answer: str | None = None
    reads: tuple[Path, ...] = ()
    keeps: tuple[Path, ...] = ()
    _written: list[Path] = field(default_factory=list)

    def run(self, prompt: str, *, default_file: str | None) -> str:
        """Carry out `prompt` and give the answer; a prompt that asks for no file writes `default_file`."""
        directives = find_directives(prompt)
        self.commits = (self.commits or _has(directives, "commit")) and not _has(directives, "nocommit")
        for directive in directives:
            self._do(directive)
        if default_file and not self._written and not _has(directives, "write"):
            self._write(default_file)
        if self.commits:
            self._commit_written()
        return self.answer if self.answer is not None else "done"

    def _do(self, directive: Directive) -> None:
        action = getattr(self, f"_{directive.word}", None)
        if action is not None:
            action(directive.value)

    def _sleep(self, value: str) -> None:
        self.door.step(f"working for {value} s")
        self.door.pause(_number(value))

    def _ask(self, value: str) -> None:
        allowed = self.permissions == "all" or self.door.ask(value)
        self.door.step(f"{'allowed' if allowed else 'refused'}: {value}")

    def _say(self, value: str) -> None:
        self.answer = value

    def _write(self, value: str) -> None:
        if self.permissions == "ask" and not self.door.ask(f"edit {value}?"):
            self.door.tool("write", {"path": value}, "refused", True)
            return
        self.door.step(f"editing {value}")
        self.door.pause(0.1)
        try:
            anywhere = self.permissions == "all"
            if not anywhere and _lies_in(self.cwd / value, self.keeps):
                raise Refused(f"{value} is not to be changed")
            target = write_file(self.cwd, value, f"{self.message}\n", anywhere=anywhere)
            self._written.append(target)
            self.door.tool("write", {"path": str(target)}, "written", False)
        except (Refused, OSError) as error:
            self.door.step(f"cannot write: {error}")
            self.door.tool("write", {"path": value}, str(error), True)

    def _read(self, value: str) -> None:
        path = self.cwd / value
        if self.permissions != "all" and not _lies_in(path, (self.cwd, *self.reads)):
            self.door.tool("read", {"path": value}, f"permission denied: {value}", True)
            return
        try:
            text = path.read_text(encoding="utf-8", errors="replace")[:_MOST_READ]
        except OSError as error:
            self.door.tool("read", {"path": value}, str(error), True)
            return
        self.door.tool("read", {"path": value}, text, False)
        self.answer = text if self.answer is None else self.answer

    def _commit_written(self) -> None:
        for target in self._written:
            self.door.step("committing")
            commit = commit_file(self.cwd, target, self.message)
            self.door.step(f"committed {commit}" if commit else "nothing committed")
        self._written.clear()

    def _mcp(self, value: str) -> None:
        name, _, text = value.partition(" ")
        try:
            given = json.loads(text or "{}")
            result = call_tool(self.mcp_config, name, given)
        except ValueError as error:
            self.door.tool(name, {}, f"arguments are no JSON object: {error}", True)
        except McpError as error:
            self.door.tool(name, given, str(error), True)
            if error.unreachable:
                raise McpUnreachable(str(error)) from error
        else:
            self.door.tool(name, given, result, False)
            self.answer = result if self.answer is None else self.answer

    def _env(self, value: str) -> None:
        seen = "set" if value in os.environ else "unset"
        self.door.step(f"env {value}: {seen}")
        self.door.tool("env", {"name": value}, seen, False)

    def _turns(self, value: str) -> None:
        for _ in range(int(_number(value))):
            self.door.turn()
            self.door.pause(0.01)

    def _child(self, value: str) -> None:
        for loner in (False, True):
            child = subprocess.Popen(
                ["sleep", str(_number(value))], stdin=subprocess.DEVNULL, start_new_session=loner
            )
            self.door.step(f"child {child.pid}")
            self.door.tool("child", {"seconds": value}, str(child.pid), False)

    def _error(self, value: str) -> None:
        raise TurnFailed(value or "API error")

    def _exit(self, value: str) -> None:
        raise Leave(int(_number(value)))

    def _crash(self, value: str) -> None:
        os.kill(os.getpid(), signal.SIGKILL)


def _lies_in(path: Path, places: tuple[Path, ...]) -> bool:
    real = path.resolve()
    return any(real.is_relative_to(place.resolve()) for place in places)


def _has(directives: tuple[Directive, ...], word: str) -> bool:
    return any(directive.word == word for directive in directives)


def _number(value: str) -> float:
    try:
        return max(0.0, float(value))
    except ValueError:
        return 0.0
