"""`af acp`, as an editor uses it: by the same library's client side, against the program itself."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import acp
import pytest
from acp import schema

from tests.conftest import Af
from tests.gitrepo import commit_files
from tests.waiting import wait_until

SECONDS = 300


class Editor:
    """What an editor keeps of a session; `agrees` is what its person says to a question."""

    def __init__(self, *, agrees: bool = True) -> None:
        self.agrees = agrees
        self.asked: list[str] = []
        self.said: list[str] = []
        self.calls: list[str] = []
        self.person: list[str] = []

    def on_connect(self, agent: object) -> None:
        pass

    async def session_update(self, session_id: str, update: Any, **more: Any) -> None:
        kind = update.session_update
        if kind == "agent_message_chunk":
            self.said.append(update.content.text)
        elif kind == "user_message_chunk":
            self.person.append(update.content.text)
        elif kind == "tool_call":
            self.calls.append(update.title)

    async def request_permission(self, session_id: str, tool_call: Any, options: Any, **more: Any) -> Any:
        self.asked.append(tool_call.content[0].content.text)
        kind = "allow_once" if self.agrees else "reject_once"
        chosen = next(option.option_id for option in options if option.kind == kind)
        outcome = schema.AllowedOutcome(outcome="selected", option_id=chosen)
        return schema.RequestPermissionResponse(outcome=outcome)


@asynccontextmanager
async def door(repo: Path, editor: Editor, *words: str) -> AsyncIterator[Any]:
    argv = [sys.executable, "-m", "agent_farm", "acp", *words]
    heard: Any = editor
    async with acp.spawn_agent_process(
        heard, *argv, env=dict(os.environ), cwd=repo, transport_kwargs={"stderr": None}
    ) as (agent, _):
        await agent.initialize(protocol_version=1)
        yield agent


def edit(repo: Path, editor: Editor, act: Callable[[Any], Awaitable[None]], *words: str) -> None:
    async def run() -> None:
        async with asyncio.timeout(SECONDS), door(repo, editor, *words) as agent:
            await act(agent)

    asyncio.run(run())


async def say(agent: Any, session: str, text: str) -> str:
    response = await agent.prompt(session_id=session, prompt=[acp.text_block(text)])
    return str(response.stop_reason)


def states(af: Af) -> dict[str, str]:
    found = json.loads(af("status", "--json").stdout)["builders"]
    return {one["id"]: one["status"]["state"] for one in found}


def test_a_session_is_a_builder(farm: Path, af: Af) -> None:
    editor = Editor()

    async def act(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(farm), mcp_servers=[])).session_id
        assert states(af) == {}  # one that is opened and left leaves nothing behind
        assert await say(agent, session, "[[write:note.txt]] [[say:first answer]]") == "end_turn"
        assert editor.said == ["first answer"]
        assert any("write" in call and "note.txt" in call for call in editor.calls)
        assert await say(agent, session, "[[say:second answer]]") == "end_turn"
        assert editor.said[1:] == ["second answer"]
        assert states(af) == {session: "idle"}
        listed = await agent.list_sessions(cwd=str(farm))
        assert [one.session_id for one in listed.sessions] == [session]

    edit(farm, editor, act)
    (id,) = states(af)
    sent = [event for event in _events(af, id) if event["event"] == "sent"]
    assert len(sent) == 1
    assert (farm / ".builders" / id / "note.txt").exists()


def _events(af: Af, id: str) -> list[dict[str, Any]]:
    found: list[dict[str, Any]] = json.loads(af("logs", id, "--json").stdout)["events"]
    return found


@pytest.mark.slow
def test_cancelling_interrupts_it_and_it_goes_on(farm: Path, af: Af) -> None:
    editor = Editor()

    async def act(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(farm), mcp_servers=[])).session_id
        turn = asyncio.create_task(say(agent, session, "[[sleep:600]]"))

        def works() -> bool:
            screen = af("capture", session).stdout
            return states(af).get(session) == "working" and "working for" in screen

        await asyncio.to_thread(wait_until, works, what="the builder at work")
        await agent.cancel(session_id=session)
        assert await turn == "cancelled"
        await asyncio.to_thread(
            wait_until, lambda: states(af)[session] == "idle", what="the interrupted turn's end"
        )
        assert await say(agent, session, "[[say:here I am]]") == "end_turn"
        assert editor.said[-1] == "here I am"

    edit(farm, editor, act)


@pytest.mark.slow
def test_a_session_is_loaded_after_the_editor_has_gone_and_resumed_after_a_stop(farm: Path, af: Af) -> None:
    ids: list[str] = []

    async def begin(agent: Any) -> None:
        ids.append((await agent.new_session(cwd=str(farm), mcp_servers=[])).session_id)
        await say(agent, ids[0], "[[say:one]]")

    edit(farm, Editor(), begin)
    assert states(af) == {ids[0]: "idle"}
    assert af("stop", ids[0]).returncode == 0
    editor = Editor()

    async def go_on(agent: Any) -> None:
        await agent.load_session(cwd=str(farm), session_id=ids[0], mcp_servers=[])
        assert ("[[say:one]]" in editor.person[0], editor.said) == (True, ["one"])
        assert await say(agent, ids[0], "[[say:two]]") == "end_turn"
        assert editor.said[-1] == "two"

    edit(farm, editor, go_on)


@pytest.mark.slow
def test_who_waits_says_so_and_goes_on_when_answered(farm: Path, af: Af) -> None:
    editor = Editor()

    async def act(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(farm), mcp_servers=[])).session_id
        turn = asyncio.create_task(say(agent, session, "[[ask:May I?]] [[say:done]]"))
        await asyncio.to_thread(wait_until, lambda: bool(editor.said), what="the question")
        assert "May I?" in editor.said[0]
        assert f"af attach {session}" in editor.said[0]
        assert af("send", session, "--keys", "1").returncode == 0
        assert await turn == "end_turn"
        assert editor.said[-1] == "done"

    edit(farm, editor, act)


@pytest.mark.slow
@pytest.mark.parametrize("agrees", [True, False])
def test_the_editors_person_is_asked_what_the_repository_wants(farm: Path, af: Af, agrees: bool) -> None:
    commit_files(farm, {"agent-farm.toml": '[spawn]\nruntime = "demo"\n[worktree]\nsetup = "touch ready"\n'})
    editor = Editor(agrees=agrees)

    async def act(agent: Any) -> None:
        session = (await agent.new_session(cwd=str(farm), mcp_servers=[])).session_id
        if agrees:
            assert await say(agent, session, "[[say:one]]") == "end_turn"
        else:
            with pytest.raises(acp.RequestError, match="nobody has agreed to"):
                await say(agent, session, "[[say:one]]")
        assert "touch ready" in editor.asked[0]

    edit(farm, editor, act)
    assert len(states(af)) == int(agrees)


@pytest.mark.slow
def test_a_session_in_which_nothing_was_said_yet(
    farm: Path, tmp_path: Path, af: Af, capfd: pytest.CaptureFixture[str]
) -> None:
    """Editors cancel, load and change the mode of what they opened, whether or not somebody used it."""
    before, now = Editor(), Editor()
    ids: list[str] = []

    async def open_and_leave(agent: Any) -> None:
        opened = await agent.new_session(cwd=str(farm), mcp_servers=[])
        ids.append(opened.session_id)
        assert opened.modes.current_mode_id == "edit"
        assert [mode.id for mode in opened.modes.available_modes] == ["ask", "edit", "all"]
        await agent.cancel(session_id=ids[0])
        assert (await agent.list_sessions(cwd=str(tmp_path))).sessions == []

    async def use(agent: Any) -> None:
        await agent.load_session(cwd=str(farm), session_id=ids[0], mcp_servers=[])
        with pytest.raises(acp.RequestError, match="There are: ask, edit, all"):
            await agent.set_session_mode(session_id=ids[0], mode_id="yolo")
        await agent.set_session_mode(session_id=ids[0], mode_id="all")
        assert await say(agent, ids[0], "[[say:one]]") == "end_turn"
        with pytest.raises(acp.RequestError, match="has been started"):
            await agent.set_session_mode(session_id=ids[0], mode_id="ask")

    edit(farm, before, open_and_leave)
    assert "Traceback" not in capfd.readouterr().err
    assert states(af) == {}
    edit(farm, now, use)
    (builder,) = json.loads(af("status", "--json").stdout)["builders"]
    assert (builder["id"], builder["permissions"], now.said) == (ids[0], "all", ["one"])
    assert af("prune", "--stop", "--discard-commits", "--discard-changes", ids[0]).returncode == 0

    async def load_removed(agent: Any) -> None:
        with pytest.raises(acp.RequestError, match="No builder"):
            await agent.load_session(cwd=str(farm), session_id=ids[0], mcp_servers=[])

    edit(farm, Editor(), load_removed)


def test_an_editor_that_dies_is_no_bug(repo: Path) -> None:
    pipe = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    argv = [sys.executable, "-m", "agent_farm", "acp"]
    with subprocess.Popen(argv, cwd=repo, **pipe) as agent:  # type: ignore[call-overload]
        agent.stdin.write(
            b'{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}\n'
        )
        agent.stdin.write(b'no json\n{"jsonrpc": "2.0", "method": "$/cancel_request", "params": {}}\n')
        agent.stdin.flush()
        assert b"agent-farm" in agent.stdout.readline()
        agent.stdout.close()
        agent.stdin.close()
        told = agent.stderr.read().decode()
        assert agent.wait(SECONDS) == 0
    assert "af acp: Error parsing JSON-RPC message" in told
    assert not re.search("Traceback|bug in af", told)


@pytest.mark.slow
def test_mistakes_are_said_with_what_to_do(farm: Path, tmp_path: Path) -> None:
    async def act(agent: Any) -> None:
        with pytest.raises(acp.RequestError, match="git repository"):
            await agent.new_session(cwd=str(tmp_path), mcp_servers=[])
        with pytest.raises(acp.RequestError, match="No builder"):
            await agent.load_session(cwd=str(farm), session_id="nobody", mcp_servers=[])
        with pytest.raises(acp.RequestError, match="No session"):
            await say(agent, "nobody", "hello")
        with pytest.raises(acp.RequestError, match="No runtime dmo"):
            await agent.new_session(cwd=str(farm), mcp_servers=[])

    edit(farm, Editor(), act, "--runtime", "dmo")


def test_what_is_no_message_ends_nothing(farm: Path) -> None:
    words = [sys.executable, "-m", "agent_farm", "acp", "--runtime", "demo"]
    hello = '{"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": {"protocolVersion": 1}}'
    params = '{"cwd": "a\\u0000", "mcpServers": []}'
    where = f'{{"jsonrpc": "2.0", "id": 2, "method": "session/new", "params": {params}}}'
    lines = ["garbage", "[]", "null", "7", "[" * 100_000, "", '{"id": {}}', hello, where]
    done = subprocess.run(
        words, cwd=farm, input="\n".join(lines), capture_output=True, text=True, check=False, timeout=SECONDS
    )
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    told = {one["id"]: one for one in answers}
    assert told[1]["result"]["protocolVersion"] == 1
    assert told[2]["error"]["message"] == "'a\\x00' is no directory"
    assert done.returncode == 0
    assert done.stderr.splitlines() == ["af acp: Error parsing JSON-RPC message: it is no JSON object"] * 5


def test_without_an_editor_it_ends_at_once(af: Af) -> None:
    """What is no pipe cannot be waited for."""
    done = af("acp", timeout=60)
    assert (done.returncode, done.stdout) == (2, "")
    assert (
        done.stderr
        == "error: Standard input is no pipe\n  An editor starts af acp with one.\nhint: af acp --help\n"
    )
