"""What an agent prints while it works: progress for the user, and in the end the answer.

A CLI that has to keep quiet until its answer is there is asked for its events instead. Output in which no
event is found is taken as it is, so that another version's plain answer is still an answer.
"""

from __future__ import annotations

import json
from typing import Any

_SHOWN = 160


class Transcript:
    """Plain text: every byte is the answer."""

    def __init__(self) -> None:
        self._raw = bytearray()

    def feed(self, line: bytes) -> str | None:
        """Take one line with its end; what of it is progress to show."""
        self._raw += line
        return None

    @property
    def answer(self) -> str:
        return self._raw.decode("utf-8", "replace")

    @property
    def failure(self) -> str | None:
        """What the agent itself said went wrong."""
        return None


class EventTranscript(Transcript):
    """One JSON object a line; lines that are none are let through."""

    def __init__(self) -> None:
        super().__init__()
        self._answer: str | None = None
        self._failure: str | None = None

    def feed(self, line: bytes) -> str | None:
        super().feed(line)
        try:
            event = json.loads(line)
        except ValueError:
            return None
        return self._take(event) if isinstance(event, dict) else None

    @property
    def answer(self) -> str:
        return super().answer if self._answer is None else self._answer

    @property
    def failure(self) -> str | None:
        return self._failure

    def _take(self, event: dict[str, Any]) -> str | None:
        raise NotImplementedError


class ClaudeTranscript(EventTranscript):
    def _take(self, event: dict[str, Any]) -> str | None:
        if event.get("type") == "result":
            said = event.get("result")
            if event.get("is_error"):
                self._failure = said or event.get("terminal_reason") or "the run failed"
            elif isinstance(said, str):
                self._answer = said
        if event.get("type") != "assistant":
            return None
        content = _dict(event, "message").get("content")
        used = (
            [part for part in content if part.get("type") == "tool_use"] if isinstance(content, list) else []
        )
        return "\n".join(_tool(part.get("name"), part.get("input")) for part in used) or None


class CodexTranscript(EventTranscript):
    def _take(self, event: dict[str, Any]) -> str | None:
        item = _dict(event, "item")
        if event.get("type") == "turn.failed":
            self._failure = str(_dict(event, "error").get("message") or "the turn failed")
        if event.get("type") == "error":
            return str(event.get("message"))
        if event.get("type") == "item.completed" and item.get("type") == "agent_message":
            self._answer = str(item.get("text", ""))
        if event.get("type") == "item.started" and item.get("type") == "command_execution":
            return _shortened(str(item.get("command", "")))
        return None


class GeminiTranscript(EventTranscript):
    def _take(self, event: dict[str, Any]) -> str | None:
        kind = event.get("type")
        if kind == "message" and event.get("role") == "assistant":
            self._answer = (self._answer or "") + str(event.get("content", ""))
        if kind == "result" and event.get("status") == "error":
            self._failure = str(_dict(event, "error").get("message") or "the run failed")
        if kind != "tool_use":
            return None
        self._answer = None  # what was said before a tool was used is not the answer
        return _tool(event.get("tool_name"), event.get("parameters"))


_FORMS = {"claude": ClaudeTranscript, "codex": CodexTranscript, "gemini": GeminiTranscript}


def transcript_of(output: str) -> Transcript:
    return _FORMS.get(output, Transcript)()


def _tool(name: object, arguments: object) -> str:
    values = [str(value) for value in arguments.values()] if isinstance(arguments, dict) else []
    return _shortened(" ".join([str(name), *values]))


def _shortened(text: str) -> str:
    line = " ".join(text.split())
    return line if len(line) <= _SHOWN else line[: _SHOWN - 1] + "…"


def _dict(event: dict[str, Any], key: str) -> dict[str, Any]:
    value = event.get(key)
    return value if isinstance(value, dict) else {}
