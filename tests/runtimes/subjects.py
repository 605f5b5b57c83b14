"""What the contract suite runs over: every adapter, with the words in which each is told what to do."""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
import pytest

from agent_farm.runtimes import get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import CLIS, require_clis

LEGO = Path(__file__).with_name("lego.py")
ACP_AGENT = Path(__file__).with_name("acp_agent.py")
MARK = "AF_TEST_MARK"
LONG_ROLE = "\n".join(f"{number}. Keep to rule number {number} 🐝." for number in range(4100))
assert len(LONG_ROLE.encode()) > 140_000


@dataclass
class Subject:
    name: str
    root: Path
    repo: Path
    api: FakeApi
    adapter: RuntimeAdapter
    model: str | None = None
    keys: Mapping[str, str] = field(default_factory=dict)

    @property
    def real(self) -> bool:
        return self.name in CLIS

    @property
    def env(self) -> dict[str, str]:
        """What it may have; every process of a test can be told by the mark."""
        source = {**os.environ, **self.keys, MARK: str(self.root)}
        own = self.adapter.cli.own_variables(source, self.model)
        return allowed_environment(source, key_names=own, declared=self.keys)

    @property
    def servers(self) -> dict[str, McpServer]:
        return {"farm": McpServer("farm", self.api.mcp_url("S1"), self.api.token)}

    async def invoke(self, prompt: str, role: str = "", **given: Any) -> RuntimeResult:
        servers = given.pop("servers", self.servers)
        env = given.pop("env", self.env)
        options = {"model": self.model, "cwd": self.repo, "home": self.root / "runtime-home", **given}
        return await self.adapter.invoke(prompt, role, servers, env, **options)

    # how it is told what to do
    def call_tool(self, text: str) -> str:
        return f"[[mcp:{text}]]" if self.real else f"[[mcp:echo_note {json.dumps({'text': text})}]]"

    def tell_variable(self, name: str) -> str:
        """Have a tool of the model say whether it sees a variable; see `sees`."""
        if self.real:
            return f"[[shell:skills/env.sh {name}]]"
        return f"[[env:{name}]]"

    def sees(self, result: RuntimeResult) -> bool:
        told = " ".join([result.output, *(str(call.result) for call in result.tool_calls)])
        if "is visible" in told or "is missing" in told:
            return "is visible" in told
        if self.name == "lego":
            return "true" in told
        return any(call.name == "env" and call.result == "set" for call in result.tool_calls)

    def heard(self, result: RuntimeResult) -> str:
        """What reached the model, or the digest of it."""
        if self.real:
            texts: list[str] = []
            for request in self.api.model_requests():
                texts += _strings(request.body)
            return "\n".join(texts)
        return result.output

    def left_processes(self) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if _is_marked(process, str(self.root))]


def _strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def _is_marked(process: psutil.Process, mark: str) -> bool:
    try:
        if process.status() == psutil.STATUS_ZOMBIE:
            return False
        return process.environ().get(MARK) == mark
    except (psutil.Error, OSError):
        return False


def make_subject(name: str, root: Path, repo: Path, api: FakeApi) -> Subject:
    skills = repo / "skills"
    skills.mkdir(exist_ok=True)
    script = skills / "env.sh"
    script.write_text(
        '#!/bin/sh\nif printenv "$1" >/dev/null; then echo "$1 is visible"; else echo "$1 is missing"; fi\n'
    )
    script.chmod(0o755)
    if name in CLIS:
        require_clis()
        cli = CLIS[name]
        return Subject(name, root, repo, api, cli.adapter, cli.model, cli.environment(api))
    if name == "lego":
        shutil.copy(LEGO, repo / "lego.py")
        entry = {"adapter": "lego.py", "timeout_minutes": 10}
        (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": {"lego": entry}}))
        keys = {"LEGO_HOME": str(root / "lego-sessions")}
        return Subject(name, root, repo, api, get_adapter("lego", repo), keys=keys)
    if name == "acp":
        return Subject(name, root, repo, api, declared_acp_agent(repo))
    return Subject(name, root, repo, api, get_adapter(name))


def declared_acp_agent(repo: Path, *words: str, **more: object) -> RuntimeAdapter:
    """The ACP agent of the tests, as ten lines of agent_runtime.json declare one."""
    entry = {"acp": [sys.executable, str(ACP_AGENT), *words], "set": {"ACP_AGENT_HOME": "{home}"}, **more}
    (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": {"acp": entry}}))
    return get_adapter("acp", repo)


IN_A_PANE = ["demo", "lego", *(pytest.param(name, marks=pytest.mark.runtimes) for name in CLIS)]
# The library of ACP takes a second to import, on both sides; it has no screen.
HEADLESS = [*IN_A_PANE, pytest.param("acp", marks=pytest.mark.slow)]
