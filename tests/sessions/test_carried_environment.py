"""What the shell that asks has of the declared variables reaches its session, whoever started the server."""

from __future__ import annotations

import base64
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agent_farm.server.stopping import stop_server
from agent_farm.server.variables import SHELL_HEADER, Shell, header_of
from tests.conftest import Af
from tests.consenting import agree_to_all
from tests.gitrepo import commit_files
from tests.server.serving import ARCHITECT, document_of, serving
from tests.sessions.loop import in_loop

pytestmark = pytest.mark.slow

TOML = '[butler]\nruntime = "demo"\n[butler.env]\nrequired = ["HEALTH_API"]\noptional = ["WANTED"]\n'


@pytest.fixture
def farm(repo: Path) -> Iterator[Path]:
    commit_files(repo, {"codev/roster/health/butler.toml": TOML})
    agree_to_all(repo)
    yield repo
    stop_server(repo, now=True)


def seen(af: Af, word: str, **env: str) -> list[str]:
    prompt = "[[env:HEALTH_API]] [[env:WANTED]] [[env:SECRET]]"
    done = af(word, "--json", prompt, env=env)
    return [call["result"] for call in json.loads(done.stdout)["result"]["tool_calls"]]


@pytest.mark.parametrize("word", ["run", "trigger"])
def test_a_variable_that_the_server_lacks_comes_from_the_shell_that_asks(
    farm: Path, af: Af, word: str
) -> None:
    assert af("butler", "start").returncode == 0
    missing = af(word, "x")
    assert (missing.returncode, "HEALTH_API" in missing.stderr) == (1, True)
    assert seen(af, word, HEALTH_API="1", SECRET="3") == ["set", "unset", "unset"]
    assert seen(af, word, HEALTH_API="1", WANTED="2") == ["set", "set", "unset"]
    assert af(word, "x").returncode == 1  # it was for that session alone


def test_no_file_holds_what_was_told(farm: Path, af: Af) -> None:
    assert seen(af, "run", HEALTH_API="told-but-not-written") == ["set", "unset", "unset"]
    written = [path for path in (farm / ".agent-farm").rglob("*") if path.is_file()]
    assert written
    assert not [path for path in written if b"told-but-not-written" in path.read_bytes()]


@in_loop
async def test_only_the_architect_tells_variables(repo: Path) -> None:
    async with serving(repo, TOML) as served:

        async def told(token: str, session: str | None, header: str) -> Any:
            params = {"name": "trigger", "arguments": {"prompt": "[[env:HEALTH_API]]"}}
            return await served.rpc(
                "tools/call", params, token=token, session=session, headers={SHELL_HEADER: header}
            )

        good = header_of(Shell({"HEALTH_API": "1"}))
        answer = document_of(await told(ARCHITECT, None, good))["result"]
        assert answer["structuredContent"]["result"]["tool_calls"][0]["result"] == "set"
        session = served.tokens.mint_for_session("s-1")
        answer = document_of(await told(session, "s-1", good))["result"]
        assert "HEALTH_API" in answer["structuredContent"]["result"]["error"]
        wrong = (b"[1]", b'{"environ": {"A": 1}}')
        for malformed in ("x", *(base64.b64encode(one).decode() for one in wrong)):
            assert (await told(ARCHITECT, None, malformed)).status_code == 400
