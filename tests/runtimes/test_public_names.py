"""The names that are promised where they are promised, without the price of importing them all."""

from __future__ import annotations

import subprocess
import sys

from agent_farm.butler import Endpoint
from agent_farm.runtimes import (
    ClaudeCodeAdapter,
    CodexAdapter,
    ExternalAdapter,
    GeminiAdapter,
    RuntimeAdapter,
    RuntimeResult,
    get_adapter,
)


def test_the_classes_are_those_of_the_adapters() -> None:
    for name, adapter in (
        ("claude-code", ClaudeCodeAdapter),
        ("codex", CodexAdapter),
        ("gemini", GeminiAdapter),
    ):
        assert type(get_adapter(name)) is adapter
        assert issubclass(adapter, RuntimeAdapter)
    assert issubclass(ExternalAdapter, RuntimeAdapter)
    assert RuntimeResult(output="x").success
    assert Endpoint(8001).servers("farm", "s-1", None)["farm"]["type"] == "http"


def test_none_is_imported_before_it_is_asked_for() -> None:
    code = (
        "import sys, agent_farm.runtimes;"
        "print([name for name in sys.modules if name.startswith('agent_farm.runtimes.')])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"
