"""A builder can write into its own run directory: whatever it puts there, no command fails over it."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest

from tests.conftest import Af
from tests.farm.conftest import Spawned

pytestmark = pytest.mark.slow

Spawn = Callable[..., Spawned]
EVENT = (
    '{{"at": 1.0, "run": "{run}", "source": "hook", "event": {event}, '
    '"state": {state}, "detail": {detail}}}\n'
)


@pytest.fixture(scope="module")
def scribbles() -> list[str]:
    words = [
        "[]",
        "null",
        "1",
        '"text"',
        "{}",
        "\x00",
        "[" * 5000,
        '{"a":' * 3000,
        "\ud800".encode("utf-16", "surrogatepass").decode("latin-1"),
    ]
    details = ['{"file": ["a"]}', '{"file": {"x": 1}}', '{"file": 7}', '{"file": "a\\u0000b"}', "[[]]"]
    events = [EVENT.format(run="RUN", event='"Stop"', state='"idle"', detail=detail) for detail in details]
    events += [
        EVENT.format(run="RUN", event='"Stop"', state='"idle"', detail=f'null, "conversation_id": {id}')
        for id in ('"--yolo"', '"a\\u0000b"', "7")
    ]
    events += [
        EVENT.format(run="RUN", event=event, state='"idle"', detail="null") for event in ("[]", "{}", "1")
    ]
    events += [
        EVENT.format(run="RUN", event='"Stop"', state=state, detail="null")
        for state in ("[]", "{}", '"happy"')
    ]
    return [f"{word}\n" for word in words] + events


def test_no_command_fails(spawn: Spawn, af: Af, scribbles: list[str]) -> None:
    builder = spawn("--shell")
    run = builder.repo / ".agent-farm/runs" / builder.id
    name = (run / "launch.json").read_text().partition('"run": "')[2].partition('"')[0]
    with (run / "events.jsonl").open("a", errors="surrogateescape") as events:
        events.writelines(line.replace("RUN", name) for line in scribbles)
    for scribble in scribbles:
        for file in ("processes.json", "exit.json"):
            (run / file).write_text(scribble)
        assert_no_bug(af, builder.id, "status")
    for words in (
        ("send", builder.id, "hello"),
        ("wait", builder.id, "--timeout", "5"),
        ("logs", builder.id),
    ):
        assert_no_bug(af, builder.id, *words)
    assert_no_bug(af, builder.id, "doctor", "--fix")
    assert_no_bug(af, builder.id, "stop", builder.id)
    assert_no_bug(af, builder.id, "resume", builder.id)
    assert_no_bug(af, builder.id, "stop", builder.id)
    done = af("prune", builder.id)
    assert done.returncode == 0, done.stderr


def test_a_pipe_in_the_place_of_a_file_holds_up_no_command(spawn: Spawn, af: Af) -> None:
    """Nobody writes into it: whoever opened it as a file would wait for ever."""
    builder = spawn("Fix")
    run = builder.repo / ".agent-farm/runs" / builder.id
    ways = {
        "launch.json": [("send", builder.id, "hello")],
        "events.jsonl": [("send", builder.id, "hello"), ("status",), ("logs", builder.id)],
        "role.md": [("stop", builder.id), ("resume", builder.id)],
        "prompt.md": [("stop", builder.id), ("resume", builder.id)],
    }
    for name, commands in ways.items():
        kept = (run / name).rename(run / "kept")
        os.mkfifo(run / name)
        for words in commands:
            done = af(*words, timeout=200)
            assert done.returncode in (0, 1, 2, 5), f"{name}: {words}: {done.stderr}"
            assert "bug" not in done.stderr, f"{name}: {words}: {done.stderr}"
        (run / name).unlink(missing_ok=True)
        kept.rename(run / name)


def assert_no_bug(af: Af, id: str, *words: str) -> None:
    done = af(*words)
    assert done.returncode in (0, 1, 5, 124), f"{words}: {done.stderr}"
    assert "bug" not in done.stderr, f"{words}: {done.stderr}"
