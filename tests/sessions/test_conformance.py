"""The official MCP conformance suite against the running server, guard included, in both protocol eras.

Most of its scenarios call tools, resources and prompts that only a fixture server has; docs/butler.md lists
those with the reason. What is here needs no fixture and has to pass.
"""

from __future__ import annotations

import asyncio
import os
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

from agent_farm.server.app import build_app
from tests.server.serving import ARCHITECT, serving

HERE = Path(__file__).parent / "conformance"
BIN = HERE / "node_modules" / ".bin"
OLD, NEW = "2025-11-25", "2026-07-28"
BOTH = (OLD, NEW)

PASS = {
    "server-initialize": (OLD,),
    "server-session-lifecycle": (OLD,),
    "ping": (OLD,),
    "tools-list": BOTH,
    "tools-call-error": BOTH,
    "resources-list": BOTH,
    "prompts-list": BOTH,
    "dns-rebinding-protection": BOTH,
    "server-sse-multiple-streams": BOTH,
    "sep-2164-resource-not-found": (NEW,),
    "caching": (NEW,),
    "http-header-validation": (NEW,),
    "input-required-result-unsupported-methods": (NEW,),
    "input-required-result-ignore-extra-params": (NEW,),
    "server-stateless": (NEW,),
}
# These two checks of server-stateless call the fixture tool `test_missing_capability`.
NEED_A_FIXTURE = {"sep-2575-server-rejects-undeclared-capability", "sep-2575-missing-capability-http-400"}
COLOUR = re.compile(r"\x1b\[[0-9;]*m")


class Carrying:
    """The suite sends no token; this hands it the architect's, before the guard looks."""

    def __init__(self, app: Any) -> None:
        self._app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] == "http":
            token = (b"authorization", f"Bearer {ARCHITECT}".encode())
            scope = {**scope, "headers": [*scope["headers"], token]}
        await self._app(scope, receive, send)


@pytest.fixture(scope="module")
def suite() -> Path:
    """The suite and its Node, installed once."""
    command = BIN / "conformance"
    if not command.exists():
        npm = shutil.which("npm")
        assert npm, "npm is not installed; install Node 20 or newer"
        install = [npm, "ci", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(install, cwd=HERE, check=True, timeout=300)
    return command


@pytest.mark.runtimes
def test_the_official_suite(repo: Path, suite: Path) -> None:
    async def run_all() -> dict[str, str]:
        failed = {}
        async with serving(repo, wrap=lambda service: Carrying(build_app(service))) as served:
            for scenario, revisions in PASS.items():
                for revision in revisions:
                    text = await _run(suite, served.url(), scenario, revision)
                    if _failures(text) - NEED_A_FIXTURE or "Passed:" not in text:
                        failed[f"{scenario} {revision}"] = text
        return failed

    failed = asyncio.run(run_all())
    assert not failed, "\n\n".join(f"{name}\n{text[-3000:]}" for name, text in failed.items())


async def _run(suite: Path, url: str, scenario: str, revision: str) -> str:
    words = ("server", "--url", url, "--scenario", scenario, "--spec-version", revision, "--timeout", "15000")
    process = await asyncio.create_subprocess_exec(
        str(suite),
        *words,
        cwd=HERE,
        env={**os.environ, "PATH": f"{BIN}{os.pathsep}{os.environ['PATH']}"},
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    output, _ = await process.communicate()
    return COLOUR.sub("", output.decode(errors="replace"))


def _failures(text: str) -> set[str]:
    """The ids of the checks that failed."""
    found = re.findall(r"\[(\S+)\s*\]\s+FAILURE", text)
    crashed = {"the suite itself"} if re.search(r"^Error:", text, re.MULTILINE) else set()
    return {*found, *crashed}
