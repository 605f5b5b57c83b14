"""A sixth CLI is one file: the one that docs/adding-a-runtime.md shows, in a pane and headless."""

from __future__ import annotations

import asyncio
import importlib.util
import os
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

from agent_farm import runtimes
from agent_farm.runtimes import adapter_names, get_adapter, vendor_keys, vendor_variables
from agent_farm.runtimes.mcp_config import McpServer
from tests.runtimes.panes import pane_of, pane_order

GUIDE = Path(__file__).parents[2] / "docs" / "adding-a-runtime.md"
# What the CLI itself does: it reports its hooks, shows an input line, and answers what it is sent.
PROGRAM = r"""
import json, os, subprocess, sys
from pathlib import Path

settings = json.loads((Path(os.environ["ACME_HOME"]) / "settings.json").read_text())
(server,) = settings["mcpServers"].values()
token = os.path.expandvars(server["headers"]["Authorization"])


def hook(event, **payload):
    for entry in settings["hooks"].get(event, ()):
        document = {"hook_event_name": event, "session_id": "s1", **payload}
        subprocess.run(entry["command"], shell=True, input=json.dumps(document), text=True)


def turn(text):
    hook("UserPromptSubmit", prompt=text)
    print("answer:", text, token, flush=True)
    hook("Stop")


words = sys.argv[1:]
if words[0] == "run":
    print(json.dumps({"type": "start", "session_id": "s1"}))
    print(json.dumps({"type": "tool", "id": "1", "name": "args", "input": {}, "result": words}))
    print(json.dumps({"type": "answer", "text": sys.stdin.read() + token}))
else:
    hook("SessionStart")
    turn(words[words.index("--") + 1])
    while True:
        line = input("> ")
        turn(line.removeprefix("\x1b[200~").removesuffix("\x1b[201~"))
"""


@pytest.fixture
def acme(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """Registered as the guide says, with its program on PATH."""
    (code,) = re.findall(r"```python\n(.*?)```", GUIDE.read_text(), re.DOTALL)
    (tmp_path / "acme.py").write_text(code)
    spec = importlib.util.spec_from_file_location("agent_farm.runtimes.acme", tmp_path / "acme.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    monkeypatch.setitem(sys.modules, "agent_farm.runtimes.acme", module)
    monkeypatch.setitem(runtimes.ADAPTERS, "acme", ("acme", "AcmeAdapter"))
    program = tmp_path / "bin" / "acme"
    program.parent.mkdir()
    program.write_text(f"#!{sys.executable}\n{PROGRAM}")
    program.chmod(0o755)
    monkeypatch.setenv("PATH", f"{program.parent}:{os.environ['PATH']}")
    monkeypatch.setenv("ACME_API_KEY", "k")
    return module


SERVER = McpServer("farm", "http://localhost:1/mcp", "the-token")


def test_it_is_a_runtime_like_the_others(acme: ModuleType) -> None:
    assert "acme" in adapter_names()
    assert get_adapter("acme").problem(os.environ) is None
    assert "set ACME_API_KEY" in str(get_adapter("acme").problem({"PATH": os.environ["PATH"]}))
    assert "ACME_API_KEY" in vendor_keys()
    assert vendor_variables(["ACME_BASE_URL", "OTHER"]) == {"ACME_BASE_URL"}


def test_headless(acme: ModuleType, tmp_path: Path) -> None:
    env = {name: os.environ[name] for name in ("PATH", "TMPDIR", "ACME_API_KEY")}
    invoked = get_adapter("acme").invoke(
        "hello ", "ROLE", {"farm": SERVER}, env, cwd=tmp_path, conversation_id="s1", resume=True
    )
    result = asyncio.run(invoked)
    assert (result.failure, result.conversation_id, result.turns) == (None, "s1", 2)
    assert result.output == "hello Bearer the-token"
    assert result.tool_calls[0].result == "run\n--json\n--mode\nauto-edit\n--resume\ns1"


def test_in_a_pane(acme: ModuleType, tmp_path: Path, repo: Path) -> None:
    adapter = get_adapter("acme")
    given = {"prompt": "hello", "env": {"ACME_API_KEY": "k"}, "role": "ROLE", "server": SERVER}
    order = pane_order(adapter, tmp_path, repo, **given)
    launch = adapter.interactive(order)
    assert launch.argv[1:] == ("--mode", "auto-edit", "--", "hello")
    assert "ROLE" in [file.content for file in launch.files]
    assert not [file for file in launch.files if "the-token" in file.content]
    with pane_of(adapter, order) as pane:
        pane.wait_for_state("idle")
        pane.wait_for_screen("answer: hello Bearer the-token")
        assert pane.conversation_id == "s1"
        before = len(pane.events)
        assert pane.send("and more").outcome == "submitted"
        pane.wait_for_state("idle", after=before)
