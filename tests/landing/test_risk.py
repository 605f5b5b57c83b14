"""What the landing queue guesses of a branch before its check, and what it says to its builder afterwards."""

from __future__ import annotations

from pathlib import Path

from agent_farm.landing.train.landing_journal import Queue, Returned
from agent_farm.landing.train.line import LandingLine
from agent_farm.landing.train.risk import Facts, Record, load_record, note_contest, note_end, risks_of
from agent_farm.operations.landing_queue import message_of


def facts(id: str, *files: str, proof: bool | None = None, here: bool = False, tip: str = "t") -> Facts:
    return Facts(id, "demo", tip, frozenset(files), proof, here)


def test_what_is_known_of_a_branch_orders_it() -> None:
    given = [
        facts("proven here", "1", proof=True, here=True),
        facts("proven elsewhere", "2", proof=True),
        facts("plain", "3"),
        facts("large", *map(str, range(100, 150))),
        facts("shares", "4", "5"),
        facts("with it", "4", "5"),
        facts("red", "6", proof=False),
    ]
    risks = risks_of(given, Record())
    assert list(risks) == sorted(risks, key=lambda id: risks[id])
    assert risks["plain"] == 0.28


def test_the_record_tells_runtimes_builders_and_tips_apart(tmp_path: Path) -> None:
    file = tmp_path / "state/record.json"
    for _ in range(20):
        note_end(file, "good", "steady", failed_tip=None)
        note_end(file, "bad", "shaky", failed_tip="old")
    record = load_record(file)
    assert (record.all.landed, record.all.blamed) == (20, 20)
    steady, shaky = (
        risks_of([Facts("new", runtime, "t", frozenset())], record)["new"] for runtime in ("steady", "shaky")
    )
    assert steady < 0.3 < shaky
    same, mended = (
        risks_of([Facts("bad", "shaky", tip, frozenset())], record)["bad"] for tip in ("old", "new")
    )
    assert same > mended
    file.write_text("{")
    assert load_record(file) == Record()


def test_who_was_kept_counts_once_for_runtime_and_builder(tmp_path: Path) -> None:
    file = tmp_path / "record.json"
    for at in (1.0, 2.0, 2.0):
        note_contest(file, at, "a", {"a": "chosen", "b": "passed over", "c": "passed over"})
    record = load_record(file)
    assert (record.runtimes["chosen"].won, record.runtimes["passed over"].lost) == (2, 4)
    assert (record.builders["a"].won, record.builders["b"].lost, record.all) == (2, 2, Record().all)
    chosen, new, other = (
        risks_of([Facts("new", runtime, "t", frozenset())], record)["new"]
        for runtime in ("chosen", "unknown", "passed over")
    )
    assert chosen < new < other


def test_a_message_to_a_builder_holds_nothing_that_a_terminal_obeys() -> None:
    queue = Queue("main", None, "rebase", "0" * 40, LandingLine(), {})
    one = Returned("a", "red", "`make` failed", ("\x1b[31mred\x1b[0m\r", "caf\xe9\t1"), "/log")
    text = message_of(queue, one)
    assert "?[31mred?[0m?" in text
    assert "caf\xe9\t1" in text
    assert "Rebase your branch onto main, make that pass" in text
    assert all(char.isprintable() or char in "\t\n" for char in text)
