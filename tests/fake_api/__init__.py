"""Model providers and an MCP server on one loopback port, so that the real CLIs run with no network.

`with fake_api() as api:` starts it; `api.requests` is everything that was asked, in order. What the "model"
answers is written in the newest user prompt (see script.py). By hand: `python -m tests.fake_api --port 8901`.

    Anthropic   POST /v1/messages, /v1/messages/count_tokens        anthropic.py
                POST …:rawPredict, …:streamRawPredict (Vertex)
    OpenAI      POST /v1/responses, /v1/chat/completions            responses.py, chat.py
    Gemini      POST /v1beta/models/<m>:generateContent, …          gemini.py
    MCP         POST /mcp with the bearer token, GET /sse           mcp.py
    decoys      anything under /decoy is recorded and answered 404
"""

from __future__ import annotations

from tests.fake_api.server import FakeApi, Recorded, fake_api

__all__ = ["FakeApi", "Recorded", "fake_api"]
