"""Sessions and architects ask about the user's local sources; builders do not."""

from __future__ import annotations

import json
import sys
from pathlib import Path

from tests.conftest import Af
from tests.server.serving import serving
from tests.sessions.loop import in_loop

_AGENT = "import sys; print('read: ' + open(sys.argv[1]).read())"


def configure(home: Path) -> None:
    """An agent of the user's that answers with the one file it was pointed at."""
    ask = [sys.executable, "-c", _AGENT, "{source_dirs}"]
    config = {"defaultAgent": "mine", "agents": {"mine": {"ask": ask, "chat": "true"}}, "sources": {}}
    file = home / ".config/lctx/config.json"
    file.parent.mkdir(parents=True)
    file.write_text(json.dumps(config))


def test_the_architect_lists_and_asks(repo: Path, home: Path, af: Af, tmp_path: Path) -> None:
    configure(home)
    (tmp_path / "notes.txt").write_text("the port is 8001")
    assert af("sources", "add", "notes", str(tmp_path / "notes.txt")).returncode == 0

    @in_loop
    async def talk() -> None:
        async with serving(repo) as served:
            listed = await served.call("list_sources", {})
            assert [one["name"] for one in json.loads(listed["content"][0]["text"])["sources"]] == ["notes"]
            question = {"sources": ["notes"], "question": "Which port?"}
            answer = await served.call("ask_sources", question)
            assert "the port is 8001" in json.loads(answer["content"][0]["text"])["answer"]
            unknown = await served.call("ask_sources", {"sources": ["nope"], "question": "?"})
            assert unknown["isError"]
            assert "nope" in unknown["content"][0]["text"]

    talk()
