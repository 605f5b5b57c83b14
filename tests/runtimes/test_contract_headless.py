"""What every adapter does headless, demo and an external executable included."""

from __future__ import annotations

import asyncio
import gc
import hashlib
import os
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent_farm.runtimes.base import PERMISSIONS, Permissions
from agent_farm.runtimes.environment import MCP_TOKEN
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.runtimes.result import RuntimeResult
from tests.runtimes.subjects import LONG_ROLE, MARK, Subject
from tests.waiting import wait_until

HOSTILE = "-rf $(touch x) `touch x` 'a' \"b\"\n\ttab 🐝 \\ %s {}\nlast line"


def run(subject: Subject, prompt: str, role: str = "", **given: object):  # type: ignore[no-untyped-def]
    return asyncio.run(subject.invoke(prompt, role, **given))


def test_the_prompt_arrives_byte_for_byte_and_the_role_too(subject: Subject) -> None:
    result = run(subject, HOSTILE, "ROLE-MARK be brief")
    assert result.failure is None
    heard = subject.heard(result)
    if subject.name == "demo":
        assert hashlib.sha256(HOSTILE.encode()).hexdigest() in heard
    else:
        assert HOSTILE in heard
    if subject.real:
        assert "ROLE-MARK be brief" in heard
    assert not (subject.repo / "x").exists()


def test_a_prompt_of_100_kb_arrives_whole(subject: Subject) -> None:
    prompt = "line with 'quotes' and 🐝\n" * 3600 + "end"
    result = run(subject, prompt)
    assert result.failure is None
    heard = subject.heard(result)
    digest = hashlib.sha256(prompt.encode()).hexdigest()
    assert digest in heard or prompt in heard or prompt.strip() in heard


def test_a_role_of_140_kb_arrives_whole(subject: Subject) -> None:
    result = run(subject, "hello", LONG_ROLE)
    assert result.failure is None
    if subject.real:
        assert LONG_ROLE in subject.heard(result)


@pytest.mark.parametrize("permissions", PERMISSIONS)
def test_what_is_not_permitted_is_refused(subject: Subject, permissions: Permissions) -> None:
    if subject.name == "lego":
        pytest.skip("what an executable may do is its own")
    note, ran = subject.repo / "note.txt", subject.repo / "ran.txt"
    (subject.repo / "other.sh").write_text("touch ran.txt\n")
    prompt = f"[[write:{note}]] [[thenshell:sh other.sh]]" if subject.real else "[[write:note.txt]]"
    result = run(subject, prompt, permissions=permissions)
    assert result.failure is None
    assert note.exists() == (permissions != "ask")
    if subject.real:  # demo runs no commands
        # codex runs any command in its sandbox; docs/runtimes.md says so
        assert ran.exists() == (permissions == "all" or (permissions == "edit" and subject.name == "codex"))


def test_one_tool_call_with_session_and_token(subject: Subject) -> None:
    if subject.name == "lego":
        pytest.skip("the contract of executables has no tool calls")
    result = run(subject, subject.call_tool("a note"))
    assert result.failure is None
    assert [call.result for call in result.tool_calls] == ["echo[runtime_session_id=S1] a note"]
    assert [call.input for call in result.tool_calls] == [{"text": "a note"}]
    call = subject.api.mcp_calls()[0]
    assert call.headers["authorization"] == f"Bearer {subject.api.token}"
    assert result.usage.output_tokens > 0
    assert result.usage.input_tokens > 0
    assert result.seconds > 0


def test_a_conversation_is_resumed_and_usage_is_of_this_run(subject: Subject) -> None:
    first = run(subject, "one")
    assert first.conversation_id
    second = run(subject, "two", conversation_id=first.conversation_id, resume=True)
    assert second.failure is None
    assert second.conversation_id == first.conversation_id
    if subject.real:
        newest = subject.api.model_requests()[-1].text
        assert "one" in newest
        assert first.output in newest
        assert second.usage == first.usage
        assert second.cost == pytest.approx(first.cost) if first.cost else True
    else:
        assert "message 2" in second.output or "n=2" in second.output


def test_an_unknown_conversation_is_refused(subject: Subject) -> None:
    unknown = "11111111-1111-4111-8111-111111111111"
    result = run(subject, "hello", conversation_id=unknown, resume=True)
    assert result.failure is not None
    assert result.failure.kind in ("refused-argument", "failed")
    if subject.name != "lego":
        assert result.failure.kind == "refused-argument"


def test_undeclared_and_foreign_variables_are_not_seen(
    subject: Subject, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("UNDECLARED_SECRET", "leak")
    assert not subject.sees(run(subject, subject.tell_variable("UNDECLARED_SECRET")))
    given = {**subject.env, "XAI_API_KEY": "another vendor's", "DECLARED": "yes"}
    foreign = subject.sees(run(subject, subject.tell_variable("XAI_API_KEY"), env=given))
    assert foreign == (subject.name == "lego")  # whose keys an executable needs is only declared
    if subject.name != "codex":  # its sandbox passes a core of variables only where told so
        assert subject.sees(run(subject, subject.tell_variable("DECLARED"), env=given))


def test_a_time_limit_ends_every_process(subject: Subject) -> None:
    begun = time.monotonic()
    result = run(subject, "[[child:600]] [[sleep:600]]", timeout=6 if subject.real else 1.5)
    assert time.monotonic() - begun < 500
    assert result.failure is not None
    assert result.failure.kind == "time-limit"
    wait_until(lambda: not subject.left_processes(), what="no process to be left")


def test_cancelling_ends_every_process(subject: Subject) -> None:
    async def cancelled() -> None:
        task = asyncio.create_task(subject.invoke("[[child:600]] [[sleep:600]]"))
        what = "the run to be under way"
        await asyncio.to_thread(wait_until, lambda: len(subject.left_processes()) >= 2, what=what)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(cancelled())
    wait_until(lambda: not subject.left_processes(), what="no process to be left")


def test_nothing_of_a_run_stays_in_tmp(subject: Subject) -> None:
    run(subject, "hello")
    run(subject, "[[error:400]]", timeout=8)
    left = [path.name for path in Path(os.environ["TMPDIR"]).glob("butler_*")]
    assert left == []


def test_key_and_token_and_role_are_in_no_argv(subject: Subject) -> None:
    role = "ROLE-MARK be brief"
    keys = (value for name, value in subject.keys.items() if name.endswith("_KEY"))
    secrets = [role, subject.api.token, *keys]

    async def watched() -> list[str]:
        task = asyncio.create_task(subject.invoke("[[sleep:60]]", role, timeout=4 if subject.real else 1))
        seen: list[str] = []
        while not task.done():
            for process in subject.left_processes():
                try:
                    seen += process.cmdline()
                except psutil.Error:
                    continue
            await asyncio.sleep(0.1)
        await task
        return seen

    words = asyncio.run(watched())
    assert words
    assert not [word for word in words if any(secret in word for secret in secrets)]


def test_the_config_file_is_private_and_holds_one_server_and_no_token(
    subject: Subject, tmp_path: Path
) -> None:
    path = subject.adapter.build_config_file(subject.servers, tmp_path)
    assert path.parent == tmp_path
    assert path.stat().st_mode & 0o077 == 0
    text = path.read_text()
    assert subject.api.mcp_url("S1") in text
    assert subject.api.token not in text
    assert MCP_TOKEN in text


def test_a_dead_server_and_a_refused_token_are_told(subject: Subject) -> None:
    prompt = subject.call_tool("x")
    for server in (
        McpServer("farm", "http://localhost:9/mcp?runtime_session_id=S1", "t"),
        McpServer("farm", subject.api.mcp_url("S1"), "another token"),
    ):
        result = run(subject, prompt, servers={"farm": server})
        assert result.failure is not None
        assert result.failure.kind == "mcp-unreachable"


def test_it_says_when_it_is_not_installed(subject: Subject) -> None:
    if subject.name == "lego":
        (subject.repo / "lego.py").unlink()
    command = None if subject.name == "lego" else ("no-such-program",)
    problem = subject.adapter.problem(subject.env, command=command)
    assert problem
    result = run(subject, "hello", command=command)
    assert result.failure is not None
    assert result.failure.kind == "not-installed"


def test_a_turn_limit_ends_it(subject: Subject) -> None:
    if subject.name == "lego":
        pytest.skip("the contract of executables does not tell turns")
    prompt = "[[loop:sh skills/env.sh X]]" if subject.real else "[[turns:50]]"
    result = run(subject, prompt, max_turns=2)
    assert result.failure is not None
    assert result.failure.kind == "turn-limit"


def test_a_worker_is_another_instance(subject: Subject) -> None:
    worker = subject.adapter.create_worker()
    assert worker is not subject.adapter
    assert worker.name == subject.adapter.name
    asyncio.run(worker.reset())


RUNNER = """
import asyncio, json, sys
from pathlib import Path
from agent_farm.runtimes import get_adapter
order = json.load(sys.stdin)
adapter = get_adapter(order["name"], Path(order["repo"]))
given = {"model": order["model"], "cwd": Path(order["repo"])}
asyncio.run(adapter.invoke(order["prompt"], "", {}, order["env"], **given))
"""


def test_killing_af_itself_leaves_no_process_and_no_file(subject: Subject) -> None:
    import json

    order = {
        "name": subject.name,
        "repo": str(subject.repo),
        "prompt": "[[child:600]] [[sleep:600]]",
        "env": subject.env,
        "model": subject.model,
    }
    af = subprocess.Popen(
        [sys.executable, "-c", RUNNER],
        stdin=subprocess.PIPE,
        text=True,
        env={**os.environ, MARK: str(subject.root)},
        cwd=Path(__file__).parents[2],
    )
    assert af.stdin
    af.stdin.write(json.dumps(order))
    af.stdin.close()
    wait_until(lambda: len(subject.left_processes()) >= 3, what="the run to be under way")
    af.send_signal(signal.SIGKILL)
    af.wait()
    wait_until(lambda: not subject.left_processes(), what="no process to be left")
    left = Path(os.environ["TMPDIR"])
    wait_until(lambda: not list(left.glob("butler_*")), what="the run's directory to be gone")


def under_way(subject: Subject) -> dict[str, psutil.Process]:
    """The processes between us and the run, once the run has its children; empty until then."""
    left = subject.left_processes()
    with suppress(psutil.Error, OSError, ValueError):
        if not subject.real and len({os.getsid(process.pid) for process in left}) < 2:
            return {}  # demo and lego have a child in a session of its own
        (guard,) = [process for process in left if process.ppid() == os.getpid()]
        (keeper,) = guard.children()
        (runtime,) = keeper.children()
        if not subject.real or subject.api.model_requests():
            return {"guard": guard, "keeper": keeper, "runtime": runtime}
    return {}


def killed_run(subject: Subject, *victims: str) -> tuple[RuntimeResult, float]:
    """What a run comes to whose parts are killed, and after how many seconds."""

    async def killed() -> tuple[RuntimeResult, float]:
        task = asyncio.create_task(subject.invoke("[[child:600]] [[sleep:600]]", timeout=500))
        what = "the run to be under way"
        parts = await asyncio.to_thread(wait_until, lambda: under_way(subject), what=what)
        begun = time.monotonic()
        for victim in victims:
            parts[victim].kill()
        return await task, time.monotonic() - begun

    return asyncio.run(killed())


@pytest.mark.parametrize("victim", ["runtime", "guard", "keeper"])
def test_killing_a_part_leaves_no_process_and_is_told(
    subject: Subject, victim: str, capfd: pytest.CaptureFixture[str]
) -> None:
    result, seconds = killed_run(subject, victim)
    assert subject.left_processes() == []
    assert result.failure is not None
    assert result.failure.kind == "killed"
    assert seconds < 120
    gc.collect()
    assert "Event loop is closed" not in capfd.readouterr().err


def test_a_run_without_a_guard_comes_to_its_end(subject: Subject, capfd: pytest.CaptureFixture[str]) -> None:
    """Nobody is left who could end a child in a session of its own; it keeps the output open."""
    result, seconds = killed_run(subject, "guard", "keeper")
    assert result.failure is not None
    assert result.failure.kind == "killed"
    assert seconds < 120
    gc.collect()
    assert "Event loop is closed" not in capfd.readouterr().err
    for process in subject.left_processes():
        process.kill()
