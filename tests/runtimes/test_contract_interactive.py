"""What every adapter does in a pane, demo and an external executable included."""

from __future__ import annotations

import hashlib
import json
import os
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.plain_text import BEFORE, as_text
from tests.runtimes.panes import SESSION, Pane, pane_of, pane_order, seconds_alone
from tests.runtimes.real.clis import CLIS
from tests.runtimes.subjects import LONG_ROLE, Subject
from tests.waiting import wait_until

MESSAGE = "-x $(touch x) `touch x` 'a' \"b\"\n\tand a second line 🐝 \\ %s"
PROMPT = "-rf $(touch x) `touch x` 'a' \"b\"\n\ttab 🐝 \\ %s {}\nlast line"
# what the input lines of CLIs take for commands of their own, or change
OBEYED = ("!touch x", "/clear the cache", "exit", "look at @READ")
TYPED = (
    *OBEYED,
    " !touch x",
    "\ufeff!touch x",
    "!",
    "/",
    "/init",
    "/health returns 500",
    "/exit",
    "quit",
    "help",
    ":q",
    "? why",
    "# heading",
    "ends with \\",
    "see $x",
)
READY_SECONDS, READY_OVER_OWN = 5.0, 0.5
# a prompt on which it has to ask a person, with --permissions ask
ASKS = {
    "demo": "[[ask:May I?]] [[nocommit]]",
    "codex": "[[escalate:touch out.txt]]",
    **{name: "[[shell:touch out.txt]]" for name in CLIS if name != "codex"},
}


def order_of(subject: Subject, prompt: str | None, **given: object) -> Start:
    defaults = {
        "prompt": prompt,
        "model": subject.model,
        "env": subject.env,
        "permissions": "edit" if subject.name == "demo" else "ask",  # demo would ask for its own edit, too
        "role": "ROLE-MARK be brief",
        "conversation_id": subject.adapter.new_conversation_id(),
        "server": subject.servers["farm"],
    }
    return pane_order(subject.adapter, subject.root, subject.repo, **{**defaults, **given})


@pytest.fixture
def pane(subject: Subject) -> Iterator[Pane]:
    """At work on a prompt that needs a person where the runtime can ask for one."""
    prompt = ASKS.get(subject.name, "hello there")
    with pane_of(subject.adapter, order_of(subject, prompt)) as running:
        yield running


def test_a_conversation_in_a_pane(subject: Subject, pane: Pane) -> None:
    """Working, waiting for a person, working, idle; a message arrives whole; a resume keeps all of it."""
    if subject.name in ASKS:
        pane.wait_for_state("waiting")
        assert next(event["reason"] for event in pane.events if event["state"] == "waiting")
        pane.accept_dialog()
    pane.wait_for_state("idle")
    expected = ["working", "waiting", "working", "idle"] if subject.name in ASKS else ["working", "idle"]
    assert [state for state in pane.states if state != "preparing"] == expected

    before = len(pane.events)
    delivery = pane.send(MESSAGE)
    assert (delivery.outcome, delivery.reason) == ("submitted", None)
    pane.wait_for_state("idle", after=before)
    assert_heard(subject, pane, MESSAGE)
    assert not (subject.repo / "x").exists()

    if subject.name != "lego":
        before = len(pane.events)
        pane.send(subject.call_tool("from the pane"))
        pane.wait_for_state("idle", after=before)
        call = subject.api.mcp_calls()[-1]
        assert "runtime_session_id=S1" in call.path
        assert call.headers["authorization"] == f"Bearer {subject.api.token}"

    conversation = pane.conversation_id
    assert conversation
    pane.tmux.kill_session(pane.tmux.panes().panes[SESSION], seconds=120)
    wait_until(lambda: not subject.left_processes(), what="no process to be left")
    seen_before = len(subject.api.requests)
    again = order_of(subject, "and once more", conversation_id=conversation, resume=True)
    with pane_of(subject.adapter, again) as resumed:
        resumed.wait_for_state("idle")
        assert resumed.conversation_id == conversation
        if subject.real:
            newest = [r for r in subject.api.model_requests() if "and once more" in r.text][-1].text
            assert "second line" in newest
            assert "ROLE-MARK be brief" in newest
            assert len(subject.api.requests) > seen_before
        elif subject.name == "demo":
            resumed.wait_for_screen("3 messages")
        else:
            assert_heard(subject, resumed, "n=3")


def assert_heard(subject: Subject, pane: Pane, text: str) -> None:
    if subject.real:
        # these take a tab that is pasted into their input line for four blanks
        expected = text.replace("\t", "    ") if subject.name in ("claude-code", "copilot") else text
        like = [part for part in _texts(subject) if "second line" in part]
        assert any(expected in part for part in like), like
    elif subject.name == "demo":
        pane.wait_for_screen(hashlib.sha256(text.encode()).hexdigest())
    else:
        state = json.loads((pane.order.place / "state.json").read_text())
        assert text in state["output"]


def _texts(subject: Subject) -> list[str]:
    from tests.runtimes.subjects import _strings

    return [text for request in subject.api.model_requests() for text in _strings(request.body)]


@pytest.mark.parametrize("prompt", [PROMPT, "/etc/hosts is wrong", "# heading", "@x y", *OBEYED])
def test_the_prompt_of_a_pane_arrives_as_text(subject: Subject, prompt: str) -> None:
    with pane_of(subject.adapter, order_of(subject, prompt)) as pane:
        pane.wait_for_state("idle")
        if subject.name == "demo":  # it reads its file
            pane.wait_for_screen(hashlib.sha256(prompt.encode()).hexdigest())
        elif subject.real:
            assert_heard_as_text(subject, pane, prompt)
        else:
            assert_heard(subject, pane, prompt)
    assert not (subject.repo / "x").exists()


@pytest.mark.slow
def test_a_message_is_text_whatever_it_begins_and_ends_with(subject: Subject) -> None:
    """Nothing runs, nothing is lost, nobody leaves; the first goes as soon as there is an input line."""
    if subject.name == "lego":
        pytest.skip("an executable has no session without a prompt")
    (subject.repo / "README.md").write_text("a name that READ could become")
    with pane_of(subject.adapter, order_of(subject, None)) as pane:
        wait_until(lambda: pane.label == "ready", what="an input line")
        runtime = pane.runtime_pid
        for text in TYPED:
            before = len(pane.events)
            delivery = pane.send(text)
            assert delivery.outcome == "submitted", (text, delivery, pane.screen)
            pane.wait_for_state("idle", after=before)
            assert_heard_as_text(subject, pane, text)
        assert pane.runtime_pid == runtime
    assert not (subject.repo / "x").exists()


def assert_heard_as_text(subject: Subject, pane: Pane, text: str) -> None:
    """The model has it, alone or after the line that makes it a message."""
    words = subject.adapter.cli.own_words
    sent = as_text(text, words)
    if subject.real:
        wanted = (BEFORE + text if words.would_obey(text) else text.strip()).replace("\ufeff", "")
        wait_until(
            lambda: any(wanted in part.replace("\ufeff", "") for part in _texts(subject)),
            what=f"the model to have {text!r}\n{pane.screen}",
        )
    elif subject.name == "demo":
        said = pane.tmux.capture(pane.pane_id, history=500)
        assert hashlib.sha256(sent.encode()).hexdigest() in said, text
    else:
        assert_heard(subject, pane, sent)


def test_a_role_of_140_kb_arrives_whole(subject: Subject) -> None:
    with pane_of(subject.adapter, order_of(subject, "hello", role=LONG_ROLE)) as pane:
        pane.wait_for_state("idle")
    if subject.real:
        assert any(LONG_ROLE in text for text in _texts(subject))


def test_it_is_ready_within_5_s_or_half_a_second_after_the_cli_alone(subject: Subject) -> None:
    """In one of up to five pairs: a busy machine slows both, and not each time alike.

    Where the CLI alone takes longer than that, half of its own time is the machine's.
    """
    if subject.name == "lego":
        pytest.skip("an executable has no session without a prompt")
    ours, alone = list[float](), list[float]()
    for _ in range(5):
        begun = time.monotonic()
        with pane_of(subject.adapter, order_of(subject, None)) as pane:
            wait_until(lambda: pane.label == "ready", what="an input line")
            ours.append(time.monotonic() - begun)
        if ours[-1] <= READY_SECONDS:
            return
        alone.append(seconds_alone(subject.adapter, order_of(subject, None, role="", server=None)))
        busy = alone[-1] / 2 if alone[-1] > READY_SECONDS else 0.0
        if ours[-1] <= alone[-1] + max(READY_OVER_OWN, busy):
            return
    raise AssertionError(f"{ours} s, alone {alone} s")


def test_an_idle_start_says_so_and_takes_a_message(subject: Subject) -> None:
    if subject.name == "lego":
        pytest.skip("an executable has no session without a prompt")
    with pane_of(subject.adapter, order_of(subject, None)) as pane:
        wait_until(lambda: pane.label == "ready", what="an input line")
        before = len(pane.events)
        assert pane.send("hello").outcome == "submitted"
        pane.wait_for_state("idle", after=before)
    assert not list(Path(os.environ["TMPDIR"]).rglob("*.so"))  # opencode unpacks 19 MB at each start
    assert not list(pane.order.place.rglob("*.so"))


def test_an_api_error_waits_for_a_person(subject: Subject) -> None:
    if subject.name in ("lego", "codex"):
        pytest.skip("no event tells an API error; codex's screen does: test_screens_live.py")
    with pane_of(subject.adapter, order_of(subject, "[[error:400]]")) as pane:
        assert pane.wait_for_state("waiting")["reason"]
        assert pane.states[-2:] == ["working", "waiting"]
        if subject.name == "opencode":  # it tries again by itself, and then gives up
            wait_until(lambda: pane.label == "ready", what="it to give up", timeout=150)
            before = len(pane.events)
            with suppress(AssertionError):
                wait_until(lambda: len(pane.events) > before, what="another event", timeout=5)
            assert pane.states[-1] == "waiting"


@pytest.mark.parametrize("victim", ["runtime", "keeper", "launcher", "pane", "server"])
def test_killing_a_part_leaves_no_process_and_a_truthful_record(subject: Subject, victim: str) -> None:
    order = order_of(subject, "[[child:600]] [[sleep:600]]")
    with pane_of(subject.adapter, order) as pane:
        pane.wait_for_state("working")
        wait_until(lambda: subject.left_processes(), what="the runtime")
        if subject.name in ("demo", "lego"):  # these have a child in a session of its own
            wait_until(lambda: len(sessions_of(subject)) >= 2, what="a session of its own")
        before = subject.left_processes()
        processes = json.loads((order.place / "processes.json").read_text())
        if victim == "server":
            os.kill(psutil.Process(processes["launcher"]).ppid(), signal.SIGKILL)
        elif victim == "pane":
            assert subject_tmux("kill-pane", "-t", pane.pane_id) == ""
        else:
            os.kill(processes[victim], signal.SIGKILL)
        wait_until(lambda: not any(map(is_alive, before)), what="no process to be left")
        exit_file = order.place / "exit.json"
        if victim in ("runtime", "keeper"):
            wait_until(lambda: "failed" in pane.states, what="the record")
            record = json.loads(exit_file.read_text())
            assert (record["run"], record["signal"], record["exit_code"]) == (order.run, "SIGKILL", None)
            shell = processes["launcher"]
            wait_until(lambda: [one.pid for one in subject.left_processes()] == [shell], what="the shell")
        else:
            assert subject.left_processes() == []
            assert not exit_file.exists()
            assert pane.states[-1] == "working"


def sessions_of(subject: Subject) -> set[int]:
    found = set()
    for process in subject.left_processes():
        with suppress(OSError):
            found.add(os.getsid(process.pid))
    return found


def is_alive(process: psutil.Process) -> bool:
    """Not the shell that took the place of the launcher, and no zombie that nobody buries."""
    with suppress(psutil.Error):
        return process.is_running() and process.status() != psutil.STATUS_ZOMBIE
    return False


def test_keys_and_tokens_can_be_read_by_nobody_else(subject: Subject, pane: Pane) -> None:
    pane.wait_for_state("waiting" if subject.name in ASKS else "idle")
    secrets = [
        "ROLE-MARK",
        subject.api.token,
        *(value for name, value in subject.keys.items() if name.endswith("_KEY")),
    ]
    launcher = json.loads((pane.order.place / "processes.json").read_text())["launcher"]
    words = [word for process in subject.left_processes() for word in command_line(process)]
    words += psutil.Process(launcher).environ().values()
    assert words
    assert not [word for word in words if any(secret in word for secret in secrets)]
    for file in pane.order.place.rglob("*"):
        if file.is_file() and file.stat().st_mode & 0o044:
            assert_private_above(file, pane.order.place)
    assert pane.order.place.stat().st_mode & 0o077 == 0
    told = subject_tmux("show-environment", "-g") + subject_tmux(
        "list-panes", "-a", "-F", "#{pane_start_command}"
    )
    assert not [secret for secret in secrets if secret in told]


def command_line(process: psutil.Process) -> list[str]:
    try:
        return process.cmdline()
    except psutil.Error:
        return []


def assert_private_above(file: Path, top: Path) -> None:
    places = [place for place in file.parents if place == top or place.is_relative_to(top)]
    assert any(place.stat().st_mode & 0o077 == 0 for place in places), file


def subject_tmux(*words: str) -> str:
    import subprocess

    return subprocess.run(["tmux", *words], capture_output=True, text=True, check=False, timeout=120).stdout
