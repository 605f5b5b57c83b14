"""OpenAI's Responses, with namespaces, client-side tool search and the code mode of newer models."""

from __future__ import annotations

import json
import time
import uuid
from typing import Any

from tests.fake_api.script import (
    USAGE_CACHED,
    USAGE_IN,
    USAGE_OUT,
    Asked,
    Call,
    Say,
    Tool,
    decide,
    directives,
    flat,
    is_missing_mcp,
    openai_error,
    what_follows,
)


def answer(handler: Any, body: dict[str, Any]) -> None:
    given = body.get("input", [])
    if isinstance(given, str):
        given = [{"type": "message", "role": "user", "content": given}]
    offered = list(body.get("tools") or [])
    for item in given:
        if item.get("type") == "additional_tools":  # newer models: the tools travel inside the input
            offered += item.get("tools") or []
    asked = _asked(given, offered)
    if handler.held_or_failed(asked.prompt, asked.result, openai_error, _limit):
        return
    item = _item(_action(asked, given, offered), given, offered)
    response = _response(body, item)
    if body.get("stream"):
        _stream(handler, response, item)
    else:
        handler.send_json(response)


def _action(asked: Asked, given: list[dict[str, Any]], offered: list[dict[str, Any]]) -> Say | Call:
    action = decide(asked)
    wanted = directives(asked.prompt)
    if asked.result is not None and "loop" not in wanted:
        wanted = what_follows(wanted) if asked.results == 1 else {}
    if isinstance(action, Say) and _has_code_mode(offered):
        script = _script(wanted)
        if script:
            patience = '// @exec: {"yield_time_ms": 120000}\n'  # or a slow tool ends in "still running"
            return Call("exec", {"input": patience + script}, {"custom": True, "namespace": "functions"})
    return action


def _script(wanted: dict[str, str]) -> str | None:
    """JavaScript that drives the nested tools."""
    if "mcp" in wanted:
        return (
            'const n = ALL_TOOLS.map(t => t.name).find(n => n.includes("echo_note")); '
            f"text(n ? await tools[n]({{text: {json.dumps(wanted['mcp'])}}})"
            ' : "NO-MCP-TOOL " + ALL_TOOLS.map(t => t.name).join(","));'
        )
    if "call" in wanted:
        name, _, given = wanted["call"].partition(" ")
        return (
            f"const n = ALL_TOOLS.map(t => t.name).find(n => n.endsWith({json.dumps(name)})); "
            f'text(n ? await tools[n]({given or "{}"}) : "NO-TOOL " + ALL_TOOLS.map(t => t.name).join(","));'
        )
    if "escalate" in wanted:
        given = {
            "cmd": wanted["escalate"],
            "sandbox_permissions": "require_escalated",
            "justification": "test",
        }
        return f"text(await tools.exec_command({json.dumps(given)}));"
    command = wanted.get("shell") or wanted.get("loop")
    if "write" in wanted:
        command = "printf 'written by fake model\\n' > " + wanted["write"]
    return f"text(await tools.exec_command({{cmd: {json.dumps(command)}}}));" if command else None


def _item(action: Say | Call, given: list[dict[str, Any]], offered: list[dict[str, Any]]) -> dict[str, Any]:
    searches = any(tool.get("type") == "tool_search" for tool in offered)
    searched = any(item.get("type") == "tool_search_output" for item in given)
    if is_missing_mcp(action) and searches and not searched:
        arguments = {"query": "echo note", "limit": 8}
        return _call_item("tool_search_call", "tsc_", execution="client", arguments=arguments)
    if isinstance(action, Say):
        content = [{"type": "output_text", "text": action.text, "annotations": []}]
        identity = "msg_" + uuid.uuid4().hex[:16]
        return {
            "type": "message",
            "id": identity,
            "role": "assistant",
            "status": "completed",
            "content": content,
        }
    namespace = {"namespace": action.extra["namespace"]} if action.extra.get("namespace") else {}
    if action.extra.get("custom"):
        written = action.arguments.get("input", "")
        return _call_item("custom_tool_call", "ctc_", name=action.name, input=written, **namespace)
    arguments_text = json.dumps(action.arguments)
    return _call_item("function_call", "fc_", name=action.name, arguments=arguments_text, **namespace)


def _call_item(kind: str, prefix: str, **fields: Any) -> dict[str, Any]:
    identity, call = prefix + uuid.uuid4().hex[:16], "call_" + uuid.uuid4().hex[:16]
    return {"type": kind, "id": identity, "status": "completed", "call_id": call, **fields}


def _response(body: dict[str, Any], item: dict[str, Any]) -> dict[str, Any]:
    usage = {
        "input_tokens": USAGE_IN,
        "input_tokens_details": {"cached_tokens": USAGE_CACHED},
        "output_tokens": USAGE_OUT,
        "output_tokens_details": {"reasoning_tokens": 7},
        "total_tokens": USAGE_IN + USAGE_OUT,
    }
    return {
        "id": "resp_" + uuid.uuid4().hex[:20],
        "object": "response",
        "created_at": int(time.time()),
        "model": body.get("model", "fake"),
        "status": "completed",
        "output": [item],
        "usage": usage,
        "error": None,
        "parallel_tool_calls": True,
        "tool_choice": "auto",
        "tools": [],
    }


def _stream(handler: Any, response: dict[str, Any], item: dict[str, Any]) -> None:
    count = 0

    def event(kind: str, **fields: Any) -> None:
        nonlocal count
        handler.send_event(
            {"type": "response." + kind, "sequence_number": count, **fields}, "response." + kind
        )
        count += 1

    here = {"item_id": item["id"], "output_index": 0}
    handler.start_events()
    event("created", response={**response, "status": "in_progress", "output": [], "usage": None})
    begun = {**item, "status": "in_progress", **({"content": []} if item["type"] == "message" else {})}
    event("output_item.added", output_index=0, item=begun)
    if item["type"] == "message":
        text = item["content"][0]["text"]
        empty = {"type": "output_text", "text": "", "annotations": []}
        event("content_part.added", content_index=0, part=empty, **here)
        event("output_text.delta", content_index=0, delta=text, **here)
        event("output_text.done", content_index=0, text=text, **here)
        event("content_part.done", content_index=0, part=item["content"][0], **here)
    elif item["type"] == "function_call":
        event("function_call_arguments.delta", delta=item["arguments"], **here)
        event("function_call_arguments.done", arguments=item["arguments"], **here)
    event("output_item.done", output_index=0, item=item)
    event("completed", response=response)


def _asked(given: list[dict[str, Any]], offered: list[dict[str, Any]]) -> Asked:
    prompts = [flat(item.get("content")) for item in given if _is_prompt(item)]
    result, results = None, 0
    if given and _is_result(given[-1]):
        result = flat(given[-1].get("output"))
    for item in reversed(given):
        if _is_result(item):
            results += 1
        elif _is_prompt(item):
            break
    return Asked(prompts[-1] if prompts else "", len(prompts), _tools(given, offered), result, results)


def _tools(given: list[dict[str, Any]], offered: list[dict[str, Any]]) -> list[Tool]:
    """Those offered and those that an earlier search has loaded."""
    tools = []
    for tool in offered:
        if tool.get("type") == "function":
            tools.append(Tool(tool["name"], tool.get("parameters", {})))
        elif tool.get("type") == "custom":
            tools.append(Tool(tool["name"], {"properties": {"input": {}}}, {"custom": True}))
        elif tool.get("type") == "namespace":
            tools += _nested(tool)
    for item in given:
        if item.get("type") == "tool_search_output":
            for tool in item.get("tools") or []:
                tools += _nested(tool) if tool.get("type") == "namespace" else _nested({"tools": [tool]})
    return tools


def _nested(space: dict[str, Any]) -> list[Tool]:
    namespace = {"namespace": space["name"]} if space.get("name") else {}
    return [
        Tool(
            tool["name"],
            tool.get("parameters", {}),
            {**namespace, **({"custom": True} if tool.get("type") == "custom" else {})},
        )
        for tool in space.get("tools", [])
        if tool.get("name")
    ]


def _has_code_mode(offered: list[dict[str, Any]]) -> bool:
    nested = [inner for tool in offered if tool.get("type") == "namespace" for inner in tool.get("tools", [])]
    return any(inner.get("type") == "custom" and inner.get("name") == "exec" for inner in nested)


def _is_prompt(item: dict[str, Any]) -> bool:
    return item.get("type", "message") == "message" and item.get("role") == "user"


def _is_result(item: dict[str, Any]) -> bool:
    kind = str(item.get("type", ""))
    return kind.endswith("_output") and kind != "tool_search_output"


def _limit(seconds: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Of a ChatGPT plan, or of opencode's."""
    ends = {"resets_at": int(time.time()) + seconds, "plan_type": "plus"}
    error = {"type": "usage_limit_reached", "message": "The usage limit has been reached", **ends}
    go = {"type": "GoUsageLimitError", "metadata": {"workspace": "w", "limitName": "5 hour"}}
    return {"error": error, **go}, {"retry-after": str(seconds)}
