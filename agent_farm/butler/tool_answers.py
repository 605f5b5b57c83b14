"""What every tool call is told: that it goes on, and what was wrong with it in words of ours."""

from __future__ import annotations

import asyncio
import re
import time
from typing import Any

from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
from mcp_types import CallToolResult, TextContent

PROGRESS_SECONDS = 5.0

_PREFIX = re.compile(r"Error executing tool \w+: ")
_INVALID = re.compile(r"\d+ validation errors? for (\w+?)(?:Arguments)?\n")
_PROBLEM = re.compile(r"^(\S+)\n  (.+?) \[type=", re.MULTILINE)


class Progress:
    """A client that asked for it hears every few seconds that a long call is still at work."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        if ctx.method != "tools/call":
            return await call_next(ctx)
        telling = asyncio.create_task(self._tell(ctx))
        try:
            return await call_next(ctx)
        finally:
            telling.cancel()

    async def _tell(self, ctx: ServerRequestContext[Any, Any]) -> None:
        began = time.monotonic()
        name = (ctx.params or {}).get("name")
        while True:
            await asyncio.sleep(PROGRESS_SECONDS)
            seconds = round(time.monotonic() - began)
            await ctx.session.report_progress(seconds, None, f"{name}: at work for {seconds} s")


class Words:
    """Errors of the caller's without the SDK's prefix and its validator's addresses."""

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        result = await call_next(ctx)
        if ctx.method == "tools/call" and isinstance(result, CallToolResult) and result.is_error:
            content = [
                TextContent(type="text", text=plain(part.text)) if isinstance(part, TextContent) else part
                for part in result.content
            ]
            return result.model_copy(update={"content": content})
        if ctx.method == "tools/call" and isinstance(result, dict) and result.get("isError"):
            texts = [
                {**part, "text": plain(part["text"])} if "text" in part else part
                for part in result.get("content") or ()
            ]
            return {**result, "content": texts}
        return result


def plain(text: str) -> str:
    text = _PREFIX.sub("", text, count=1)
    invalid = _INVALID.match(text)
    if invalid is None:
        return text
    problems = [f"{name}: {what[:1].lower()}{what[1:]}" for name, what in _PROBLEM.findall(text)]
    return "\n".join([f"{invalid[1]} cannot be called like that", *problems])
