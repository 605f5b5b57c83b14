"""OpenAI's Chat Completions."""

from __future__ import annotations

import json
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
    flat,
    openai_error,
)

_USAGE = {
    "prompt_tokens": USAGE_IN,
    "completion_tokens": USAGE_OUT,
    "total_tokens": USAGE_IN + USAGE_OUT,
    "prompt_tokens_details": {"cached_tokens": USAGE_CACHED},
}


def answer(handler: Any, body: dict[str, Any]) -> None:
    asked = _asked(body)
    if handler.held_or_failed(asked.prompt, asked.result, openai_error):
        return
    action = decide(asked)
    head = {"id": "chatcmpl-" + uuid.uuid4().hex[:16], "created": 1, "model": body.get("model", "fake")}
    calls = None if isinstance(action, Say) else [_tool_call(action)]
    end = "tool_calls" if calls else "stop"
    if not body.get("stream"):
        message = {"role": "assistant", "content": action.text if isinstance(action, Say) else None}
        if calls:
            message["tool_calls"] = calls
        choice = {"index": 0, "finish_reason": end, "message": message}
        handler.send_json({**head, "object": "chat.completion", "usage": _USAGE, "choices": [choice]})
        return

    def chunk(delta: dict[str, Any], finish: str | None = None) -> None:
        choice = {"index": 0, "delta": delta, "finish_reason": finish}
        handler.send_event({**head, "object": "chat.completion.chunk", "choices": [choice]})

    handler.start_events()
    chunk({"role": "assistant", "content": "" if isinstance(action, Say) else None})
    chunk({"content": action.text} if isinstance(action, Say) else {"tool_calls": calls})
    chunk({}, end)
    handler.send_event({**head, "object": "chat.completion.chunk", "choices": [], "usage": _USAGE})
    handler.send_event("[DONE]")


def _tool_call(action: Call) -> dict[str, Any]:
    function = {"name": action.name, "arguments": json.dumps(action.arguments)}
    return {"index": 0, "id": "call_" + uuid.uuid4().hex[:12], "type": "function", "function": function}


def _asked(body: dict[str, Any]) -> Asked:
    messages = body.get("messages", [])
    functions = [tool["function"] for tool in body.get("tools") or [] if tool.get("type") == "function"]
    tools = [Tool(function["name"], function.get("parameters", {})) for function in functions]
    prompts = [flat(message.get("content")) for message in messages if message["role"] == "user"]
    result = flat(messages[-1].get("content")) if messages and messages[-1]["role"] == "tool" else None
    results = 0
    for message in reversed(messages):
        if message["role"] == "tool":
            results += 1
        elif message["role"] == "user":
            break
    return Asked(prompts[-1] if prompts else "", len(prompts), tools, result, results)
