"""Tokens and cost from what the runtimes write, in the forms their transcripts have."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from agent_farm.pane import usage
from agent_farm.pane.usage import usage_of


def transcript(tmp_path: Path, *lines: object) -> dict[str, object]:
    file = tmp_path / "transcript.jsonl"
    file.write_text("".join(line if isinstance(line, str) else json.dumps(line) + "\n" for line in lines))
    return {"transcript_path": str(file)}


def claude(id: str, **usage: int) -> dict[str, object]:
    return {"type": "assistant", "message": {"id": id, "usage": usage}}


def test_a_transcript_too_long_to_be_read_is_told_as_unknown(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not as the tokens of its first part."""
    payload = transcript(tmp_path, *(claude(f"m{n}", input_tokens=1, output_tokens=1) for n in range(40)))
    monkeypatch.setattr(usage, "_LARGEST", 1000)
    assert usage_of(payload) is None


def test_claude_counts_each_message_once(tmp_path: Path) -> None:
    payload = transcript(
        tmp_path,
        {"type": "user", "message": {"content": "hi"}},
        claude("m1", input_tokens=10, output_tokens=1),
        claude("m1", input_tokens=10, output_tokens=5, cache_read_input_tokens=100),
        claude("m2", input_tokens=20, output_tokens=7),
    )
    assert usage_of(payload) == {"input_tokens": 30, "output_tokens": 12, "cached_tokens": 100}


def test_codex_tells_the_sum_so_far(tmp_path: Path) -> None:
    def count(spent: int) -> dict[str, object]:
        total = {"input_tokens": spent, "cached_input_tokens": 4, "output_tokens": 3}
        return {"type": "event_msg", "payload": {"type": "token_count", "info": {"total_token_usage": total}}}

    payload = transcript(tmp_path, count(5), count(9), {"payload": {"type": "token_count", "info": None}})
    assert usage_of(payload) == {"input_tokens": 9, "output_tokens": 3, "cached_tokens": 4}


def test_a_hook_that_tells_it_itself() -> None:
    payload: dict[str, object] = {"usage": {"input_tokens": 1, "output_tokens": 2}, "cost": 0.5}
    assert usage_of(payload) == {"input_tokens": 1, "output_tokens": 2, "cost": 0.5}


@pytest.mark.parametrize("lines", [(), ('{"usage": ',), ('["usage"]\n',), ('{"message": {"usage": 3}}\n',)])
def test_what_cannot_be_read_says_nothing(tmp_path: Path, lines: tuple[str, ...]) -> None:
    assert usage_of(transcript(tmp_path, *lines)) is None
    assert usage_of({"transcript_path": str(tmp_path / "none")}) is None
