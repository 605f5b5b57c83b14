"""Anthropic's Messages."""

from __future__ import annotations

import json
import re
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
    flat,
    is_missing_mcp,
)

_REMINDER = re.compile(r"<system-reminder>.*?</system-reminder>", re.DOTALL)
_KINDS = {429: "rate_limit_error", 401: "authentication_error", 529: "overloaded_error"}


def answer(handler: Any, body: dict[str, Any]) -> None:
    asked = _asked(body)
    if handler.held_or_failed(asked.prompt, asked.result, _error, _limit):
        return
    action = decide(asked)
    if is_missing_mcp(action) and any(tool.name == "ToolSearch" for tool in asked.tools):
        action = Call("ToolSearch", {"query": "echo_note", "max_results": 5})
    usage = {
        "input_tokens": USAGE_IN,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": USAGE_CACHED,
        "output_tokens": 1,
    }
    message = {
        "id": "msg_" + uuid.uuid4().hex[:20],
        "type": "message",
        "role": "assistant",
        "model": body.get("model", "fake"),
        "content": [],
        "stop_reason": None,
        "stop_sequence": None,
        "usage": usage,
    }
    stop = "end_turn" if isinstance(action, Say) else "tool_use"
    block = _block(action)
    if not body.get("stream"):
        usage = {**usage, "output_tokens": USAGE_OUT}
        handler.send_json({**message, "content": [block], "stop_reason": stop, "usage": usage})
        return
    _stream(handler, message, block, action, stop)


def _block(action: Say | Call) -> dict[str, Any]:
    if isinstance(action, Say):
        return {"type": "text", "text": action.text}
    identity = "toolu_" + uuid.uuid4().hex[:20]
    return {"type": "tool_use", "id": identity, "name": action.name, "input": action.arguments}


def _stream(
    handler: Any, message: dict[str, Any], block: dict[str, Any], action: Say | Call, stop: str
) -> None:
    def event(kind: str, **fields: Any) -> None:
        handler.send_event({"type": kind, **fields}, kind)

    handler.start_events()
    event("message_start", message=message)
    if isinstance(action, Say):
        event("content_block_start", index=0, content_block={"type": "text", "text": ""})
        for word in re.findall(r"\S+\s*|\s+", action.text):
            event("content_block_delta", index=0, delta={"type": "text_delta", "text": word})
    else:
        event("content_block_start", index=0, content_block={**block, "input": {}})
        partial = json.dumps(action.arguments)
        event("content_block_delta", index=0, delta={"type": "input_json_delta", "partial_json": partial})
    event("content_block_stop", index=0)
    event(
        "message_delta",
        delta={"stop_reason": stop, "stop_sequence": None},
        usage={"output_tokens": USAGE_OUT},
    )
    event("message_stop")


def _asked(body: dict[str, Any]) -> Asked:
    messages = body.get("messages", [])
    tools = [
        Tool(tool["name"], tool.get("input_schema", {})) for tool in body.get("tools", []) if "name" in tool
    ]
    prompts = [
        flat([part for part in _parts(message) if part.get("type") == "text"])
        for message in messages
        if message["role"] == "user" and not _has_result(message)
    ]
    return Asked(_newest(prompts), len(prompts), tools, _result(messages), _results(messages))


def _parts(message: dict[str, Any]) -> list[dict[str, Any]]:
    content = message["content"]
    return content if isinstance(content, list) else [{"type": "text", "text": content}]


def _has_result(message: dict[str, Any]) -> bool:
    return any(part.get("type") == "tool_result" for part in _parts(message))


def _newest(prompts: list[str]) -> str:
    """Messages that hold nothing but reminders are the CLI's, not the user's."""
    for prompt in reversed(prompts):
        said = _REMINDER.sub("", prompt)
        if said.strip():
            return said
    return prompts[-1] if prompts else ""


def _result(messages: list[dict[str, Any]]) -> str | None:
    """The first tool result after the newest answer of the model."""
    result = None
    for message in reversed(messages):
        if message["role"] == "assistant":
            break
        for part in _parts(message):
            if part.get("type") == "tool_result":
                result = flat(part.get("content"))
    return result


def _results(messages: list[dict[str, Any]]) -> int:
    count = 0
    for message in reversed(messages):
        if _has_result(message):
            count += 1
        elif message["role"] == "user" and _REMINDER.sub("", flat(message["content"])).strip():
            break
    return count


def _limit(seconds: int) -> tuple[dict[str, Any], dict[str, str]]:
    """Of a subscription."""
    kind = "anthropic-ratelimit-unified"
    ends = str(int(time.time()) + seconds)
    told = {"status": "rejected", "reset": ends, "representative-claim": "five_hour", "5h-reset": ends}
    return _error(429), {f"{kind}-{name}": value for name, value in {**told, "5h-status": "rejected"}.items()}


def _error(code: int) -> dict[str, Any]:
    kind = _KINDS.get(code, "api_error")
    return {"type": "error", "error": {"type": kind, "message": f"fake error {code}"}}
