"""Gemini's generateContent."""

from __future__ import annotations

import json
import uuid
from typing import Any

from tests.fake_api.script import (
    USAGE_CACHED,
    USAGE_IN,
    USAGE_OUT,
    Asked,
    Say,
    Tool,
    decide,
    filled,
    flat,
)

_STATUS = {429: "RESOURCE_EXHAUSTED", 401: "UNAUTHENTICATED", 400: "INVALID_ARGUMENT"}


def answer(handler: Any, body: dict[str, Any], *, stream: bool) -> None:
    asked = _asked(body)
    if handler.held_or_failed(asked.prompt, asked.result, _error, _limit):
        return
    action = decide(asked)
    schema = _answer_schema(body)
    if schema and not asked.tools:  # side questions: router, next speaker, loop checks
        properties = schema.get("properties", {})
        form = Tool("", {"properties": properties, "required": list(properties)})
        action = Say(json.dumps(filled(form)))
    if isinstance(action, Say):
        part: dict[str, Any] = {"text": action.text}
    else:
        identity = "fc-" + uuid.uuid4().hex[:8]
        part = {"functionCall": {"id": identity, "name": action.name, "args": action.arguments}}
    response = _response(part)
    if stream:
        handler.start_events()
        handler.send_event(response)
    else:
        handler.send_json(response)


def _response(part: dict[str, Any]) -> dict[str, Any]:
    content = {"role": "model", "parts": [part]}
    return {
        "candidates": [{"content": content, "finishReason": "STOP", "index": 0}],
        "usageMetadata": {
            "promptTokenCount": USAGE_IN,
            "candidatesTokenCount": USAGE_OUT,
            "cachedContentTokenCount": USAGE_CACHED,
            "totalTokenCount": USAGE_IN + USAGE_OUT,
        },
        "modelVersion": "fake-gemini",
        "responseId": uuid.uuid4().hex[:12],
    }


def _answer_schema(body: dict[str, Any]) -> dict[str, Any]:
    settings = body.get("generationConfig") or {}
    return settings.get("responseJsonSchema") or settings.get("responseSchema") or {}


def _asked(body: dict[str, Any]) -> Asked:
    declared = [
        function
        for tool in body.get("tools") or []
        for function in tool.get("functionDeclarations", []) or []
    ]
    tools = [
        Tool(function["name"], function.get("parametersJsonSchema") or function.get("parameters") or {})
        for function in declared
    ]
    contents = body.get("contents", [])
    prompts = [
        flat([part for part in content.get("parts", []) if "text" in part])
        for content in contents
        if content.get("role") == "user" and not _has_result(content)
    ]
    result = None
    for part in contents[-1].get("parts", []) if contents else []:
        if "functionResponse" in part:
            response = part["functionResponse"].get("response", {})
            output = response.get("output")
            result = output if isinstance(output, str) else json.dumps(response)
    return Asked(prompts[-1] if prompts else "", len(prompts), tools, result, _results(contents))


def _has_result(content: dict[str, Any]) -> bool:
    return any("functionResponse" in part for part in content.get("parts", []))


def _results(contents: list[dict[str, Any]]) -> int:
    count = 0
    for content in reversed(contents):
        if _has_result(content):
            count += 1
        elif content.get("role") == "user":
            break
    return count


def _limit(seconds: int) -> tuple[dict[str, Any], dict[str, str]]:
    error = _error(429)["error"]
    error["message"] = (
        f"You have exhausted your capacity on this model. Your quota will reset after {seconds}s."
    )
    kind = "type.googleapis.com/google.rpc"
    reason = {"reason": "QUOTA_EXHAUSTED", "domain": "cloudcode-pa.googleapis.com", "metadata": {}}
    error["details"] = [
        {"@type": f"{kind}.ErrorInfo", **reason},
        {"@type": f"{kind}.RetryInfo", "retryDelay": f"{seconds}s"},
    ]
    return {"error": error}, {}


def _error(code: int) -> dict[str, Any]:
    status = _STATUS.get(code, "INTERNAL")
    return {"error": {"code": code, "message": f"fake error {code}", "status": status}}
