"""One turn of the demo agent: does what the prompt says, and answers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Protocol

from agent_farm.runtimes.demo_agent.arguments import Arguments
from agent_farm.runtimes.demo_agent.conversation import Conversation, Leave
from agent_farm.runtimes.demo_agent.demo_files import (
    Refused,
    commit_file,
    lies_in,
    lines_of,
    read_inside,
    target_of,
    write_file,
)
from agent_farm.runtimes.demo_agent.instructions import (
    LinesWanted,
    find_directives,
    find_lines_wanted,
    find_spec,
)


class Door(Protocol):
    """How a turn is shown and answered: in a terminal, or as lines of JSON."""

    def step(self, text: str) -> None: ...
    def pause(self, seconds: float) -> None: ...
    def ask(self, question: str) -> bool: ...
    def turn(self) -> None: ...
    def tool(self, name: str, given: dict[str, object], result: str, is_error: bool) -> None: ...


class TurnFailed(Exception):
    """The model's API failed, or so the demo agent says."""

    kind = "api-error"


class McpUnreachable(TurnFailed):
    kind = "mcp-unreachable"


class Turn:
    def __init__(
        self, door: Door, arguments: Arguments, conversation: Conversation, commits: bool, message: str
    ) -> None:
        self.door = door
        self.arguments = arguments
        self.conversation = conversation
        self.commits = commits
        self.message = message
        self.answer: str | None = None
        self.cwd = Path.cwd()
        self._written = list[Path]()

    def run(self, prompt: str, *, default_file: str | None) -> str:
        """Carry out `prompt` and return the answer; a prompt that asks for no file writes `default_file`."""
        directives = find_directives(prompt)
        words = {directive.word for directive in directives}
        self.commits = (self.commits or "commit" in words) and "nocommit" not in words
        for directive in directives:
            action: Callable[[str], None] | None = getattr(self, f"_{directive.word}", None)
            if action is not None:
                action(directive.value)
        if "write" not in words:
            self._write_what_is_asked(prompt, default_file)
        for target in self._written if self.commits else ():
            self.door.step("committing")
            commit = commit_file(self.cwd, target, self.message)
            self.door.step(f"committed {commit}" if commit else "nothing committed")
        return self.answer if self.answer is not None else "done"

    def _write_what_is_asked(self, prompt: str, default_file: str | None) -> None:
        spec = find_spec(prompt)
        wanted = find_lines_wanted(prompt) or find_lines_wanted(read_inside(self.cwd, spec) if spec else "")
        file = (wanted.file or self.conversation.file or default_file) if wanted else default_file
        if file and wanted:
            self._write_lines(file, wanted)
        elif file:
            self._edit(file, lambda target: f"{self.message}\n")

    def _write_lines(self, file: str, wanted: LinesWanted) -> None:
        self.message = f"Demo work on {file}"
        total = 0

        def content(target: Path) -> str:
            nonlocal total
            lines = lines_of(target, wanted.number, wanted.topic)
            total = len(lines)
            return "\n".join([*lines, ""])

        if self._edit(file, content) and self.answer is None:
            plural = "" if wanted.number == 1 else "s"
            self.answer = f"wrote {wanted.number} line{plural} into {file}, which has {total}"

    def _write(self, value: str) -> None:
        self._edit(value, lambda target: f"{self.message}\n")

    def _edit(self, name: str, content: Callable[[Path], str]) -> bool:
        """Returns whether it was allowed and possible."""
        anywhere = self.arguments.permissions == "all"
        if self.arguments.permissions == "ask" and not self.door.ask(f"edit {name}?"):
            self.door.tool("write", {"path": name}, "refused", True)
            return False
        self.door.step(f"editing {name}")
        self.door.pause(0.1)
        try:
            if not anywhere and lies_in(self.cwd / name, map(Path, self.arguments.keep)):
                raise Refused(f"{name} is not to be changed")
            target = target_of(self.cwd, name, anywhere=anywhere)
            write_file(target, content(target))
        except (Refused, OSError, UnicodeDecodeError) as error:
            self.door.step(f"cannot write: {error}")
            self.door.tool("write", {"path": name}, str(error), True)
            return False
        self._written.append(target)
        self.conversation.file = name
        self.door.tool("write", {"path": str(target)}, "written", False)
        return True

    def _sleep(self, value: str) -> None:
        self.door.step(f"working for {value} s")
        self.door.pause(_number(value))

    def _ask(self, value: str) -> None:
        allowed = self.arguments.permissions == "all" or self.door.ask(value)
        self.door.step(f"{'allowed' if allowed else 'refused'}: {value}")

    def _say(self, value: str) -> None:
        self.answer = value

    def _read(self, value: str) -> None:
        places = (self.cwd, *map(Path, self.arguments.read))
        if self.arguments.permissions != "all" and not lies_in(self.cwd / value, places):
            self.door.tool("read", {"path": value}, f"permission denied: {value}", True)
            return
        try:
            text = (self.cwd / value).read_text(encoding="utf-8", errors="replace")[:20_000]
        except OSError as error:
            self.door.tool("read", {"path": value}, str(error), True)
            return
        self.door.tool("read", {"path": value}, text, False)
        self.answer = text if self.answer is None else self.answer

    def _mcp(self, value: str) -> None:
        from agent_farm.runtimes.demo_agent.mcp_call import McpError, call_tool  # loads urllib, which is slow

        name, _, text = value.partition(" ")
        given: dict[str, object] = {}
        try:
            given = json.loads(text or "{}")
            result = call_tool(self.arguments.mcp_config, name, given)
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


def spending(given: int, made: int) -> dict[str, object]:
    """The usage reported for these numbers of bytes: four bytes a token, at a made-up price."""
    tokens = {"input_tokens": given // 4 + 1, "output_tokens": made // 4 + 1}
    return {"usage": tokens, "cost": round(sum(tokens.values()) * 1e-6, 9)}


def bytes_of(text: str) -> int:
    return len(text.encode("utf-8", "replace"))


def _number(value: str) -> float:
    try:
        return max(0.0, float(value))
    except ValueError:
        return 0.0
