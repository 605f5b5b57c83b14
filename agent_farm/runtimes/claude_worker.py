"""Runs `claude_agent_sdk.query()` in a process of its own.

The SDK passes all of `os.environ` to its child, so it runs here, where only the declared variables are. A
JSON object on standard input has the prompt and the SDK's options; every message goes out as one line of
JSON. Run as `python -E -P -m agent_farm.runtimes.claude_worker`; only this process pays the second that
importing the SDK takes.
"""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Mapping
from typing import Any

from claude_agent_sdk import (
    AssistantMessage,
    ClaudeAgentOptions,
    ClaudeSDKError,
    ProcessError,
    ResultMessage,
    SystemMessage,
    TextBlock,
    ToolResultBlock,
    ToolUseBlock,
    UserMessage,
    query,
)

from agent_farm.runtimes.console.reporting import emit


async def run(order: Mapping[str, Any]) -> int:
    said: list[str] = []
    options = ClaudeAgentOptions(**order["options"], stderr=said.append)
    ended = False
    try:
        async for message in query(prompt=order["prompt"], options=options):
            _tell(message)
            ended = ended or isinstance(message, ResultMessage)
    except ClaudeSDKError as error:
        if not ended:  # an API error is reported as a result, then raised
            stderr = "\n".join(said[-20:])
            code = error.exit_code if isinstance(error, ProcessError) else None
            emit({"type": "failed", "message": str(error), "stderr": stderr, "exit_code": code})
            return 1
    return 0


def _tell(message: object) -> None:
    """Print the message as claude itself would."""
    if isinstance(message, SystemMessage):
        emit(_plain(message.data))
    elif isinstance(message, AssistantMessage):
        blocks = [block for block in map(_block, message.content) if block]
        parent = message.parent_tool_use_id
        emit({"type": "assistant", "message": {"content": blocks}, "parent_tool_use_id": parent})
    elif isinstance(message, UserMessage) and isinstance(message.content, list):
        emit({"type": "user", "message": {"content": [b for b in map(_block, message.content) if b]}})
    elif isinstance(message, ResultMessage):
        emit({"type": "result", **_plain(vars(message))})


def _block(block: object) -> dict[str, object] | None:
    if isinstance(block, TextBlock):
        return {"type": "text", "text": block.text}
    if isinstance(block, ToolUseBlock):
        return {"type": "tool_use", "id": block.id, "name": block.name, "input": block.input}
    if isinstance(block, ToolResultBlock):
        told = {"content": block.content, "is_error": bool(block.is_error)}
        return {"type": "tool_result", "tool_use_id": block.tool_use_id, **told}
    return None


def _plain(value: Any) -> Any:
    return json.loads(json.dumps(value, default=str))


if __name__ == "__main__":
    sys.exit(asyncio.run(run(json.load(sys.stdin))))
