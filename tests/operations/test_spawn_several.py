"""What a list of tasks, copies and runtimes come to."""

from __future__ import annotations

import pytest

from agent_farm.errors import UsageError
from agent_farm.operations.spawn_request import Spawn
from agent_farm.operations.spawn_several import expand, read_tasks

CHECK_LIST = """\
# To do

Some words.

- [ ] Fix the login
  It says 500.

  - [x] seen by ann
- [x] Done long ago
  and still not a task
* [ ] Write `docs`

The end.
"""
PARAGRAPHS = """\
Fix the login.
It says 500.

Write this:

```python
a = 1

b = 2
```
"""


def texts(tasks: str) -> list[str]:
    return [str(fields["task"]) for fields in read_tasks(tasks)]


def test_the_open_items_of_a_check_list() -> None:
    assert texts(CHECK_LIST) == ["Fix the login\nIt says 500.\n\n- [x] seen by ann", "Write `docs`"]


def test_paragraphs_with_code_in_one_piece() -> None:
    assert texts(PARAGRAPHS) == [
        "Fix the login.\nIt says 500.",
        "Write this:",
        "```python\na = 1\n\nb = 2\n```",
    ]


def test_lines_of_json_are_requests() -> None:
    tasks = '{"task": "a", "name": "x", "runtime": "codex"}\n\n{"issue": "42", "protocol": "bugfix"}\n'
    one, two = expand(Spawn(tasks=tasks, runtime="demo", model="m"))
    assert one == Spawn(task="a", name="x", runtime="codex", model="m")
    assert two == Spawn(issue="42", protocol="bugfix", runtime="demo", model="m")


def test_copies_and_runtimes_in_turn() -> None:
    three = expand(Spawn(task="t", name="fix", copies=3, runtimes=("claude-code", "codex")))
    assert [(one.name, one.runtime) for one in three] == [
        ("fix-1", "claude-code"),
        ("fix-2", "codex"),
        ("fix-3", "claude-code"),
    ]
    assert [one.runtime for one in expand(Spawn(task="t", runtimes=("codex", "gemini")))] == [
        "codex",
        "gemini",
    ]


@pytest.mark.parametrize(
    ("asked", "what"),
    [
        (Spawn(tasks=" \n"), "It contains no task"),
        (Spawn(tasks="- [x] done"), "It contains no task"),
        (Spawn(tasks="a\0b"), "The tasks contain a NUL byte"),
        (Spawn(tasks='{"task": "a"}\n{"task"'), "Line 2 of the tasks is not valid JSON"),
        (Spawn(tasks='{"task": "a"}\n[1]'), "Line 2 of the tasks is not a JSON object"),
        (Spawn(tasks='{"task": "a", "yes": true}'), "yes applies to all tasks, not to one"),
        (Spawn(tasks='{"tsak": "a"}'), 'Not a valid task: {"tsak": "a"}'),
        (Spawn(task="t", copies=100, tasks="\n\n".join(["t"] * 11)), "1100 builders at once"),
        (
            Spawn(task="t", runtime="demo", runtimes=("codex",)),
            "Flags are mutually exclusive: --runtime, --runtimes",
        ),
    ],
)
def test_what_is_refused(asked: Spawn, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        expand(asked)
    assert caught.value.what == what
