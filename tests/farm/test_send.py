"""`af send`, `af stop`, `af wait` with several builders, and with a tmux that does not answer."""

from __future__ import annotations

import json
import os
import signal
import subprocess
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from agent_farm.farm.submissions import has_come
from agent_farm.pane.journal import digest_of_prompt, record_event
from tests.conftest import Af
from tests.farm.conftest import Spawned
from tests.waiting import wait_until

Spawn = Callable[..., Spawned]


@contextmanager
def hung_tmux() -> Iterator[None]:
    asked = subprocess.run(["tmux", "display-message", "-p", "#{pid}"], capture_output=True, check=True)
    server = int(asked.stdout)
    os.kill(server, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(server, signal.SIGCONT)


def edit_registry(repo: Path, id: str, **values: object) -> None:
    file = repo / ".agent-farm/registry.json"
    document = json.loads(file.read_text())
    document["builders"][id].update(values)
    file.write_text(json.dumps(document))


def test_each_result_is_told_also_when_another_fails(spawn: Spawn, af: Af, repo: Path) -> None:
    good, bad, ended = spawn("--shell"), spawn("--shell"), spawn("--shell").stop()
    edit_registry(repo, bad.id, runtime="gone-cli")

    told = af("send", bad.id, good.id, ended.id, "hello there", "--json")

    deliveries = {one["id"]: one for one in json.loads(told.stdout)["deliveries"]}
    assert [deliveries[one.id]["outcome"] for one in (bad, good, ended)] == ["held", "submitted", "held"]
    assert "gone-cli, its runtime, is not declared" in deliveries[bad.id]["reason"]
    assert told.returncode == 5
    said = af("send", bad.id, good.id, "once more").stdout
    assert f"{good.id} submitted\n" in said
    assert f"{bad.id} held: gone-cli" in said


def test_an_ended_builder_comes_with_the_command_that_goes_on(spawn: Spawn, af: Af) -> None:
    ended = spawn("--shell").stop()
    assert af("send", ended.id, "hello").stderr == f"hint: af resume {ended.id}\n"


def test_a_forgotten_text_is_not_the_name_of_a_builder(spawn: Spawn, af: Af) -> None:
    one, two = spawn("--shell"), spawn("--shell")
    for word in (two.id, two.id[:-1]):
        done = af("send", one.id, word)
        assert done.returncode == 2
        assert "no text to send" in done.stderr
    assert af("send", one.id, "-", input=two.id).returncode == 0


def test_a_refused_text_is_answered_with_one_json_document(spawn: Spawn, af: Af) -> None:
    one = spawn("--shell")
    for text in ("", "a\x1bb"):
        done = af("send", one.id, text, "--json")
        assert done.returncode == 2
        assert json.loads(done.stdout)["error"]["hint"] == "af send --help"


def test_only_an_event_of_this_very_text_confirms_it(tmp_path: Path) -> None:
    """The first prompt of a start is submitted while the message is still in the line."""
    events = tmp_path / "events.jsonl"
    wanted = ("run", "UserPromptSubmit", digest_of_prompt("my\tmessage"))

    def report(run: str, event: str, text: str | None) -> None:
        detail = {"detail": {"said": digest_of_prompt(text)}} if text is not None else {}
        record_event(str(tmp_path), {"run": run, "event": event, **detail})

    report("run", "UserPromptSubmit", "the first prompt")
    report("run", "UserPromptSubmit", None)
    report("other", "UserPromptSubmit", "my message")
    report("run", "Stop", "my message")
    assert not has_come(events, 0, wanted)
    report("run", "UserPromptSubmit", "my    message ")
    assert has_come(events, 0, wanted)


@pytest.mark.slow
def test_a_tmux_that_does_not_answer_is_unknown_to_every_command(spawn: Spawn, af: Af) -> None:
    one, two = spawn("--shell"), spawn("--shell")
    with hung_tmux():
        sent = af("send", one.id, two.id, "hello")
        stopped = af("stop", "--all", "--json")
        waited = af("wait", one.id, "--timeout", "1")
        pruned = af("prune", one.id, two.id)
    assert sent.returncode == 5
    assert [line.partition(": ")[2].split(":")[0] for line in sent.stdout.splitlines()] == [
        "tmux could not be asked"
    ] * 2
    assert stopped.returncode == 1
    told = json.loads(stopped.stdout)
    assert (told["stopped"], {one["id"] for one in told["failed"]}) == ([], {one.id, two.id})
    assert (waited.returncode, "unknown" in waited.stderr) == (124, True)
    assert pruned.returncode != 0
    assert one.worktree.is_dir()
    wait_until(lambda: (one.state, two.state) == ("idle", "idle"), what="the states afterwards")
    assert "hello" not in af("capture", one.id).stdout
