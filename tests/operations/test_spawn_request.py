"""Which flags make which mode, and the words for those that do not go together."""

# ruff: noqa: S604  (--shell is a mode of ours, no shell)
from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_farm.errors import UsageError
from agent_farm.operations.spawn_request import (
    IssueMode,
    ProtocolMode,
    ShellMode,
    Spawn,
    SpecMode,
    TaskMode,
    choose_mode,
    parse_args,
)


@pytest.mark.parametrize(
    ("flags", "mode"),
    [
        (Spawn(project="0009"), SpecMode("0009")),
        (Spawn(task="Fix auth"), TaskMode("Fix auth")),
        (Spawn(task="Fix", files=("a.py", "b.py")), TaskMode("Fix", ("a.py", "b.py"))),
        (Spawn(task="Fix", files=("a.py",)), TaskMode("Fix", ("a.py",))),
        (Spawn(protocol="cleanup"), ProtocolMode("cleanup")),
        (Spawn(protocol="experiment", args='{"a": [1]}'), ProtocolMode("experiment", {"a": [1]})),
        (Spawn(shell=True), ShellMode()),
        (Spawn(issue="42"), IssueMode("42")),
        (Spawn(issue="42", protocol="bugfix/"), IssueMode("42", ProtocolMode("bugfix"))),
        (Spawn(project="9", protocol="spir"), SpecMode("9", ProtocolMode("spir"))),
        (Spawn(project="9", protocol="p", args="{}"), SpecMode("9", ProtocolMode("p", {}))),
        (Spawn(task="42 is the answer, print it"), TaskMode("42 is the answer, print it")),
    ],
)
def test_flags_make_one_mode(flags: Spawn, mode: object) -> None:
    assert choose_mode(flags) == mode


CONFLICTS = [
    (Spawn(project="9", task="t"), "Cannot combine --project with task text"),
    (Spawn(project="9", task="t"), "Cannot combine --project with task text"),
    (Spawn(protocol="p", task="t"), "Cannot combine task text with --protocol"),
    (Spawn(protocol="p", task="t"), "Cannot combine task text with --protocol"),
    (Spawn(project="9", issue="42"), "Flags are mutually exclusive: --project, --issue"),
    (
        Spawn(project="9", issue="42", protocol="p"),
        "Flags are mutually exclusive: --project, --issue, --protocol",
    ),
    (Spawn(issue="42", shell=True), "Flags are mutually exclusive: --issue, --shell"),
    (Spawn(issue="42", task="t"), "Flags are mutually exclusive: task text, --issue"),
    (Spawn(project="9", protocol="p", task="t"), "Cannot combine --project with task text"),
    (Spawn(project="9", name="x"), "Cannot combine --name with --project"),
    (Spawn(issue=" "), "--issue is empty"),
    (Spawn(task="42"), "42 alone is not a task"),
    (Spawn(task=" #42\n"), "#42 alone is not a task"),
    (Spawn(project="9", shell=True), "Flags are mutually exclusive: --project, --shell"),
    (Spawn(protocol="p", shell=True), "Flags are mutually exclusive: --protocol, --shell"),
    (
        Spawn(project="9", protocol="p", shell=True),
        "Flags are mutually exclusive: --project, --protocol, --shell",
    ),
    (Spawn(shell=True, task="t"), "Flags are mutually exclusive: task text, --shell"),
    (Spawn(shell=True, task="t"), "Flags are mutually exclusive: task text, --shell"),
    (Spawn(shell=True, files=("a",)), "--files requires a task"),
    (Spawn(project="9", files=("a",)), "--files requires a task"),
    (Spawn(protocol="p", files=("a",)), "--files requires a task"),
    (Spawn(files=("a",)), "--files requires a task"),
    (Spawn(task="t", args="{}"), "--args requires --protocol"),
    (Spawn(project="9", args="{}"), "--args requires --protocol"),
    (Spawn(args="{}"), "--args requires --protocol"),
    (Spawn(protocol="p", args="{"), "--args is not valid JSON"),
    (Spawn(protocol="p", args="[1]"), "--args must be a JSON object"),
    (Spawn(protocol="p", args="null"), "--args must be a JSON object"),
    (Spawn(task=""), "The task text is empty"),
    (Spawn(task=" \n\t"), "The task text is empty"),
    (Spawn(task="a\0b"), "The task text contains a NUL byte"),
    (Spawn(project=""), "--project is empty"),
    (Spawn(protocol=" "), "--protocol is empty"),
    (Spawn(), "Nothing to spawn"),
]


@pytest.mark.parametrize(("flags", "what"), CONFLICTS, ids=[what for _, what in CONFLICTS])
def test_flags_that_do_not_go_together(flags: Spawn, what: str) -> None:
    with pytest.raises(UsageError) as caught:
        choose_mode(flags)
    assert caught.value.what == what
    assert caught.value.exit_code == 2


def test_a_number_alone_is_answered_with_the_two_commands_it_may_mean() -> None:
    with pytest.raises(UsageError) as caught:
        choose_mode(Spawn(task="#0042"))
    shown = "\n".join(caught.value.evidence)
    assert "af spawn --issue 0042" in shown
    assert "af spawn --project 0042" in shown


def test_nothing_at_all_shows_each_mode_with_an_example() -> None:
    with pytest.raises(UsageError) as caught:
        choose_mode(Spawn())
    shown = "\n".join(caught.value.evidence)
    for word in ("spec", "task", "issue", "item", "protocol", "shell"):
        assert word in shown
    assert len(caught.value.evidence) == 6
    assert shown.count("af spawn") == 6


def test_broken_json_says_where_it_breaks() -> None:
    with pytest.raises(UsageError) as caught:
        parse_args('{"a": 1,\n "b" 2}')
    assert "line 2, column 6" in str(caught.value.why)


@pytest.mark.parametrize(
    "text", ['{"a": NaN}', '{"a": -Infinity}', '{"a": 1e999}', '{"a": "\\ud800"}', f'{{"a": {"9" * 5000}}}']
)
def test_what_only_python_takes_for_json_is_refused(text: str) -> None:
    """The prompt shows it as JSON, and the registry stores it: both have to be readable by others."""
    with pytest.raises(UsageError, match="--args is not valid JSON"):
        parse_args(text)


def test_json_nested_beyond_reason_is_refused() -> None:
    with pytest.raises(UsageError):
        parse_args('{"a":' * 100_000)


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=10,
)


@pytest.mark.slow
@given(st.dictionaries(st.text(), JSON))
def test_every_json_object_is_taken_as_it_is(value: dict[str, object]) -> None:
    assert parse_args(json.dumps(value)) == value


@given(
    st.builds(
        Spawn,
        task=st.none() | st.text(),
        project=st.none() | st.text(),
        issue=st.none() | st.text(),
        protocol=st.none() | st.text(),
        shell=st.booleans(),
        files=st.lists(st.text()).map(tuple),
        args=st.none() | st.text(),
    )
)
def test_any_flags_are_one_mode_or_a_usage_error(flags: Spawn) -> None:
    try:
        mode = choose_mode(flags)
    except UsageError:
        return
    subjects = [flags.task is not None, flags.project is not None, flags.issue is not None, flags.shell]
    assert subjects.count(True) == 1 or (not any(subjects) and flags.protocol is not None)
    assert isinstance(mode, (SpecMode, IssueMode, TaskMode, ProtocolMode, ShellMode))
