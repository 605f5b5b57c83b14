"""What the "model" does, decided by directives in the newest user prompt:

[[mcp:TEXT]]       call the offered tool whose name contains "echo_note"
[[thenmcp:TEXT]]   the same, after the first tool result of this turn (two calls in one turn)
[[thenshell:CMD]]  [[shell]], likewise
[[write:PATH]]     write a file through whatever write, patch or shell tool is offered
[[shell:CMD]]      run CMD through the offered shell tool
[[escalate:CMD]]   codex: run CMD through the shell tool, outside of the sandbox
[[call:TOOL {…}]]  call TOOL, or the MCP tool that ends with _TOOL, with these arguments
[[sleep:S]]        wait S seconds before answering, which keeps the CLI working
[[error:CODE]]     answer with HTTP CODE and the provider's own error body
[[limit:SECONDS]]  answer that a limit is reached, which ends so many seconds later
[[loop:CMD]]       run CMD through the shell tool again and again, without end
[[say:TEXT]]       answer TEXT; without any directive: "FAKE-OK n=<user turns>"

`Call the tool TOOL, … argument NAME="VALUE"`, as `af runtimes check` says it, is a [[call]] too.

After a tool's result the answer is "TOOL-RESULT: <result>" and the turn ends.
"""

from __future__ import annotations

import json
import re
from dataclasses import dataclass, field
from typing import Any

USAGE_IN, USAGE_OUT, USAGE_CACHED = 1234, 56, 1000
SHELL_TOOLS = ("exec_command", "shell_command", "shell", "local_shell", "Bash", "bash", "run_shell_command")
WRITE_TOOLS = ("Write", "write_file", "write", "create", "edit_file")
PATH_NAMES = ("file_path", "filepath", "path", "absolute_path", "filename")
CONTENT_NAMES = ("content", "contents", "file_text", "text", "filetext")
FILLERS: dict[str, Any] = {"boolean": False, "integer": 1, "number": 1, "array": [], "object": {}}

_DIRECTIVE = re.compile(r"\[\[(\w+)(?::((?:(?!\]\]).)*))?\]\]", re.DOTALL)

_SENTENCE = re.compile(r'Call the tool (\w+), .*? argument (\w+)="(\w+)"')


@dataclass
class Tool:
    name: str
    schema: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)


@dataclass
class Asked:
    """A provider's request in the words all providers share; `result` is the newest tool result, if any."""

    prompt: str
    turns: int
    tools: list[Tool]
    result: str | None = None
    results: int = 0


@dataclass
class Say:
    text: str


@dataclass
class Call:
    name: str
    arguments: dict[str, Any]
    extra: dict[str, Any] = field(default_factory=dict)


def directives(text: str) -> dict[str, str]:
    found = {found[1]: found[2] or "" for found in _DIRECTIVE.finditer(text or "")}
    if not found and (asked := _SENTENCE.search(text or "")):
        tool, name, value = asked.groups()
        return {"call": f"{tool} {json.dumps({name: value})}"}
    return found


def what_follows(wanted: dict[str, str]) -> dict[str, str]:
    """The [[then…]] directives as those that hold after the first result."""
    return {name.removeprefix("then"): text for name, text in wanted.items() if name.startswith("then")}


def decide(asked: Asked) -> Say | Call:
    wanted = directives(asked.prompt)
    if "loop" in wanted:
        return _shell(asked, wanted["loop"])
    if asked.result is not None:
        wanted = what_follows(wanted) if asked.results == 1 else {}
        if not wanted:
            return Say("TOOL-RESULT: " + asked.result[:300])
    if not asked.tools:
        return Say(wanted.get("say") or "fake title")
    if "mcp" in wanted:
        return _mcp(asked, wanted["mcp"])
    if "write" in wanted:
        return _write(asked, wanted["write"])
    if "shell" in wanted:
        return _shell(asked, wanted["shell"])
    if "call" in wanted:
        name, _, given = wanted["call"].partition(" ")
        tool = _offered(asked, (name,)) or _of_a_server(asked, name)
        return Call(tool.name, json.loads(given or "{}"), tool.extra) if tool else _no_tool(asked, name)
    return Say(wanted.get("say") or f"FAKE-OK n={asked.turns}")


def filled(tool: Tool, *, path: str | None = None, command: str | None = None) -> dict[str, Any]:
    """Arguments in the offered schema's own property names."""
    required = tool.schema.get("required") or []
    given: dict[str, Any] = {}
    for name, schema in (tool.schema.get("properties") or {}).items():
        low = name.lower()
        if path is not None and low in PATH_NAMES:
            given[name] = path
        elif path is not None and low in CONTENT_NAMES:
            given[name] = "written by fake model\n"
        elif command is not None and low in ("command", "cmd"):
            given[name] = ["bash", "-lc", command] if schema.get("type") == "array" else command
        elif low in ("description", "justification") and name in required:
            given[name] = "fake model call"
        elif name in required:
            kind = str(schema.get("type")).lower()
            given[name] = FILLERS.get(kind, (schema.get("enum") or ["x"])[0])
    return given


def flat(content: Any) -> str:
    """Any provider's content as text."""
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    if isinstance(content, dict):
        inner = (
            content.get("text") or content.get("content") or content.get("output") or content.get("result")
        )
        return flat(inner)
    return "\n".join(flat(part) for part in content)


def is_missing_mcp(action: Say | Call) -> bool:
    return isinstance(action, Say) and action.text.startswith("NO-MCP-TOOL")


def _mcp(asked: Asked, text: str) -> Say | Call:
    for tool in asked.tools:
        if "echo_note" in tool.name:
            return Call(tool.name, {"text": text or "hello from the fake model"}, tool.extra)
    return Say("NO-MCP-TOOL offered=" + ",".join(sorted(tool.name for tool in asked.tools))[:600])


def _write(asked: Asked, path: str) -> Say | Call:
    patch = _offered(asked, ("apply_patch",))
    if patch and "patchText" in patch.schema.get("properties", {}):
        text = f"*** Begin Patch\n*** Add File: {path}\n+written by fake model\n*** End Patch"
        return Call(patch.name, {"patchText": text}, patch.extra)
    tool = _offered(asked, WRITE_TOOLS)
    if tool:
        return Call(tool.name, filled(tool, path=path), tool.extra)
    return _shell(asked, f"printf 'written by fake model\\n' > {path}")


def _shell(asked: Asked, command: str) -> Say | Call:
    tool = _offered(asked, SHELL_TOOLS)
    return Call(tool.name, filled(tool, command=command), tool.extra) if tool else _no_tool(asked, "SHELL")


def _offered(asked: Asked, names: tuple[str, ...]) -> Tool | None:
    by_name = {tool.name: tool for tool in asked.tools}
    return next((by_name[name] for name in names if name in by_name), None)


def _of_a_server(asked: Asked, name: str) -> Tool | None:
    """An MCP tool under the prefix that the CLI gave it."""
    return next((tool for tool in asked.tools if tool.name.endswith((f"_{name}", f"-{name}"))), None)


def _no_tool(asked: Asked, name: str) -> Say:
    return Say(f"NO-{name}-TOOL offered=" + ",".join(sorted(tool.name for tool in asked.tools))[:600])


def openai_error(code: int) -> dict[str, Any]:
    kind = "server_error" if code >= 500 else "invalid_request_error"
    return {"error": {"message": f"fake error {code}", "type": kind, "code": "fake"}}
