"""The board's order, its filter, its lines at every width, and the options of a dialog, without a screen."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from textual.geometry import Size

from agent_farm.board.board_order import arrange, next_needing
from agent_farm.board.key_table import KEYS, Key
from agent_farm.board.keyed_screen import told_keys
from agent_farm.board.line_text import BoardLine, Look, lines_of, text_of
from agent_farm.board.review_keys import REVIEW_KEYS
from agent_farm.cli.cells import cells
from agent_farm.operations.shown import BuilderShown
from agent_farm.tmux.screen import options_of


def a_builder(id: str, state: str = "idle", reason: str | None = None, **more: Any) -> BuilderShown:
    record = {
        "id": id, "type": "task", "branch": f"builder/{id}", "worktree": f"/r/.builders/{id}",
        "session": f"af-r-1234-{id}", "runtime": "demo", "model": None, "base": "main",
        "base_commit": "a" * 40, "prompt_file": None, "role": None, "task_text": f"Task of {id}",
        "protocol_name": None,
        "protocol_args": None, "spec": None, "files": (), "ports": (), "conversation_id": None,
        "created_at": f"2026-01-01T00:00:0{len(id) % 10}+00:00", "state": "running", "reason": None,
        "run": "0" * 16, "socket": "/tmp/s", "permissions": "edit", "subdirectory": "", "new_branch": True,
        "ephemeral": False, "title": f"Task of {id}", "git": None, "usage": None, "proof": None,
        "pull_request": None,
    }  # fmt: skip
    status = {
        "state": state,
        "source": "hook",
        "at": 0.0,
        "exit_code": None,
        "reason": reason,
        "cut_short": False,
    }
    return msgspec.convert({**record, "status": status, **more}, BuilderShown)


ALL = [
    a_builder("one", "working"),
    a_builder("three", "idle"),
    a_builder("eleven", "exited"),
    a_builder("four", "failed", "exit code 1"),
    a_builder("seventh", "waiting", "May I run npm test?"),
    a_builder("lost-one", "lost"),
]


def test_who_needs_a_person_comes_first_and_who_has_ended_last() -> None:
    groups = [(group.title, [one.id for one in group.builders]) for group in arrange(ALL)]
    assert groups == [
        ("Needs you", ["seventh", "lost-one"]),
        ("Failed", ["four"]),
        ("Working", ["one"]),
        ("Idle", ["three"]),
        ("Ended", ["eleven"]),
    ]


def test_a_filter_wants_all_of_its_words_anywhere() -> None:
    found = [one.id for group in arrange(ALL, words="TASK wait") for one in group.builders]
    assert found == ["seventh"]
    assert arrange(ALL, words="nothing-like-it") == []


def test_other_orders_are_one_list() -> None:
    (group,) = arrange(ALL, sorting="task")
    assert [one.id for one in group.builders] == sorted(one.id for one in ALL)


def test_the_next_that_needs_a_person_goes_round() -> None:
    groups = arrange(ALL)
    assert next_needing(groups, None) == "seventh"
    assert next_needing(groups, "seventh") == "lost-one"
    assert next_needing(groups, "three") == "seventh"
    assert next_needing(arrange(ALL[:3]), "one") is None


def test_a_pull_request_is_shown_also_where_there_is_no_room_for_both() -> None:
    one = {"forge": "gh", "number": 12, "url": "", "state": "merged", "head": None, "remote": "origin",
           "branch": "b", "base": "main", "into": "main", "pushed": [], "at": 1.0}  # fmt: skip
    builder = a_builder("asked", pull_request=one)
    for width in (60, 200):
        assert any(" #12 merged " in text for _, text in drawn([builder], Look(width, 9.0, (), None, {})))


@pytest.mark.parametrize("width", [40, 60, 80, 200])
def test_no_line_is_wider_than_the_list(width: int) -> None:
    wide = a_builder("wide", "waiting", "日本語" * 60, task_text="🎉" * 80, title="🎉 wide\x1b[31m " * 30)
    look = Look(width, 9.0, {"wide"}, "wide", {"wide": "checking"})
    lines = drawn([*ALL, wide], look)
    assert max(cells(text) for _, text in lines) <= width
    assert not any("\x1b" in text for _, text in lines)
    assert sum(line.id == "wide" for line, _ in lines) == 2  # its question stands below it


def drawn(builders: Sequence[BuilderShown], look: Look) -> list[tuple[BoardLine, str]]:
    return [(line, text_of(line, look).plain) for line in lines_of(arrange(builders))]


def test_without_colours_the_cursor_and_the_marks_are_seen() -> None:
    lines = drawn(ALL, Look(80, 9.0, {"four"}, "one", {}))
    shown = {line.id: text[:2] for line, text in lines if line.id in ("one", "three")}
    assert shown == {"one": "› ", "three": "  "}
    assert next(text for line, text in lines if line.id == "four").startswith(" *")


def test_a_key_that_does_nothing_says_why() -> None:
    by_word = {key.word: key for key in KEYS}
    ended, running = ALL[2], ALL[0]
    assert by_word["stop"].refuse([ended]) == "eleven does not run (exited)"
    assert by_word["resume"].refuse([running]) == "one runs (working)"
    assert by_word["stop"].refuse([running]) is None
    assert by_word["shell"].refuse([ended, running]) == "it acts on one builder: unmark the others"
    assert by_word["prune"].refuse([]) == "there is no builder under the cursor"


def test_every_key_stands_for_one_thing() -> None:
    assert len({key.keys for key in KEYS}) == len({key.word for key in KEYS}) == len(KEYS)


@pytest.mark.parametrize("keys", [KEYS, REVIEW_KEYS], ids=["board", "review"])
def test_every_key_is_on_the_smallest_screen_and_stays_in_its_place(keys: Sequence[Key[Any]]) -> None:
    nothing = [replace(key, refuse=lambda chosen: "no") for key in keys]
    anything = [replace(key, refuse=lambda chosen: None) for key in keys]
    off, on = (told_keys(some, None, Size(60, 16)).plain for some in (nothing, anything))
    assert off.replace("(", " ").replace(")", " ") == on
    rows = on.split("\n")
    assert len(rows) == 2
    assert all(len(row) <= 60 for row in rows)
    assert all(f" {key.shown} " in on for key in keys)
    wide = told_keys(anything, None, Size(200, 50)).plain
    assert all(f" {key.shown} {key.word} " in wide for key in keys)


def test_the_options_of_the_lowest_dialog_are_found() -> None:
    screen = """
    1. old
    │ Do you want to proceed?
    │ ❯ 1. Yes
    │   2. Yes, and don't ask again
    │   3. No, and tell it what to do     │
    """
    assert options_of(screen) == {
        "1": "Yes", "2": "Yes, and don't ask again", "3": "No, and tell it what to do",
    }  # fmt: skip
    assert options_of("nothing to choose") == {}
