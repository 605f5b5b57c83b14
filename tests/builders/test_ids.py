"""Ids and branches, by type, as design states them."""

from __future__ import annotations

import hashlib
import itertools
import re
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_farm.builders import ids
from agent_farm.builders.ids import Name, Spec
from agent_farm.errors import AgentFarmError, NotFound, UsageError


def draws(*suffixes: str) -> ids.Draw:
    return iter(suffixes).__next__


def test_a_spec_is_named_after_its_project() -> None:
    assert ids.spec_name(Spec("0009", "terminal-click")) == Name("0009", "builder/0009-terminal-click")


def test_a_task_is_named_after_the_hash_of_its_text() -> None:
    start = hashlib.sha256(b"Fix auth").hexdigest()[:4]
    name = next(ids.task_names("Fix auth", draws("x9k2")))
    assert name == Name(f"task-{start}-x9k2", f"builder/task-{start}-x9k2")


def test_a_protocol_is_named_after_itself_and_the_second() -> None:
    names = ids.protocol_names("cleanup", 1733250000)
    assert next(names) == Name("cleanup-1733250000", "builder/protocol-cleanup-1733250000")
    assert next(names) == Name("cleanup-1733250001", "builder/protocol-cleanup-1733250001")


def test_a_shell_is_named_after_the_second_and_a_draw() -> None:
    name = next(ids.shell_names(1733250000, draws("b4c1")))
    assert name == Name("shell-1733250000-b4c1", "builder/shell-1733250000-b4c1")


def test_a_suffix_is_four_of_thirty_six_characters() -> None:
    drawn = {ids.draw_suffix() for _ in range(3000)}
    assert all(re.fullmatch(r"[a-z0-9]{4}", suffix) for suffix in drawn)
    assert {char for suffix in drawn for char in suffix} == set("abcdefghijklmnopqrstuvwxyz0123456789")
    assert len(drawn) > 2900


@given(st.text(min_size=1).filter(lambda text: text.isprintable()))
def test_every_task_gives_an_id_that_is_safe_in_paths_tmux_and_git(text: str) -> None:
    name = next(ids.task_names(text))
    assert re.fullmatch(r"task-[0-9a-f]{4}-[a-z0-9]{4}", name.id)
    assert name.branch == f"builder/{name.id}"


def test_a_taken_name_is_drawn_again() -> None:
    names = ids.task_names("x", draws("aaaa", "bbbb"))
    assert ids.first_free(names, lambda name: name.id.endswith("aaaa")).id.endswith("bbbb")


def test_draws_that_are_all_taken_end() -> None:
    with pytest.raises(AgentFarmError, match="No free builder id"):
        ids.first_free(ids.task_names("x"), lambda name: True)


def test_a_taken_second_moves_to_the_next_free_one() -> None:
    taken = {f"cleanup-{second}" for second in range(100, 160)}
    assert (
        ids.first_free(ids.protocol_names("cleanup", 100), lambda name: name.id in taken).id == "cleanup-160"
    )


SPECS = ["0009-terminal-click.md", "0010-login.md", "TICK-tack.md", "README.md", "notes.txt", "0011-.md"]


@pytest.mark.parametrize("project", ["0009", "9", "09", "000009"])
def test_a_project_is_found_by_its_number(project: str) -> None:
    assert ids.find_spec(project, SPECS) == Spec("0009", "terminal-click")


def test_a_project_need_not_be_a_number() -> None:
    assert ids.find_spec("TICK", SPECS) == Spec("TICK", "tack")


def test_an_exact_id_wins_over_the_same_number() -> None:
    assert ids.find_spec("9", ["0009-a.md", "9-b.md"]) == Spec("9", "b")


@pytest.mark.parametrize("project", ["9", "0009"])
def test_an_ambiguous_project_lists_what_it_could_be(project: str) -> None:
    files = ["0009-a.md", "0009-b.md"] if project == "0009" else ["0009-a.md", "009-b.md"]
    with pytest.raises(UsageError) as caught:
        ids.find_spec(project, files)
    assert caught.value.evidence == tuple(f"codev/specs/{name}" for name in files)


def test_an_unknown_project_lists_what_exists_and_names_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        ids.find_spec("0008", SPECS)
    error = caught.value
    assert "0009-terminal-click" in str(error.why)
    assert "0010-login" in str(error.why)
    assert "The nearest is 00" in str(error.why)
    assert error.hint == "ls codev/specs", "a number that looks alike is another project"
    with pytest.raises(NotFound) as caught:
        ids.find_spec("0008", [])
    assert caught.value.hint == "af init", "there is nothing to list"


@pytest.mark.parametrize("words", ["0009-terminal-click", "codev/specs/0009-terminal-click.md"])
def test_a_project_is_found_by_what_a_shell_completes(words: str) -> None:
    assert ids.find_spec(words, SPECS).id == "0009"


def test_a_long_list_of_specs_is_cut() -> None:
    with pytest.raises(NotFound) as caught:
        ids.find_spec("99", [f"{number:04}-x.md" for number in range(100, 200)])
    assert str(caught.value.why).endswith(" and 80 more")
    assert len(str(caught.value.why)) < 300


def test_an_unknown_protocol_lists_what_exists_and_names_the_nearest() -> None:
    with pytest.raises(NotFound) as caught:
        ids.require_protocol("clenup", ["cleanup", "experiment"])
    assert "cleanup, experiment" in str(caught.value.why)
    assert caught.value.hint == "af spawn --protocol cleanup"


@pytest.mark.parametrize("name", ["../../etc", "a/b", "-x", "", "a b", "a.b", "x;y"])
def test_a_protocol_whose_name_is_no_name_is_refused(name: str) -> None:
    """Even where the tree has such a directory: it becomes part of a path and of a branch."""
    with pytest.raises(NotFound):
        ids.require_protocol(name, [name])


IDS = ["task-a7f3-x9k2", "task-a7f3-zzzz", "0009", "00091", "shell-1-aaaa"]


def test_a_builder_is_found_by_an_unambiguous_prefix() -> None:
    assert ids.match_builder("shell", IDS) == "shell-1-aaaa"
    assert ids.match_builder("task-a7f3-x", IDS) == "task-a7f3-x9k2"


def test_an_exact_id_wins_over_a_longer_one() -> None:
    assert ids.match_builder("0009", IDS) == "0009"


def test_an_ambiguous_prefix_lists_what_it_could_be() -> None:
    with pytest.raises(UsageError) as caught:
        ids.match_builder("task-a7f3", IDS)
    assert "task-a7f3-x9k2, task-a7f3-zzzz" in str(caught.value.why)


@pytest.mark.parametrize("prefix", ["tsk-a7f3-x9k2", "nothing", ""])
def test_an_unknown_builder_is_an_error(prefix: str) -> None:
    with pytest.raises((NotFound, UsageError)) as caught:
        ids.match_builder(prefix, IDS)
    assert caught.value.hint == "af status"


def test_the_nearest_builder_is_named() -> None:
    with pytest.raises(NotFound) as caught:
        ids.match_builder("task-a7f3-x9k3", IDS)
    assert "task-a7f3-x9k2" in str(caught.value.why)


@given(st.lists(st.from_regex(r"[a-z0-9-]{1,12}", fullmatch=True), unique=True), st.data())
def test_every_builder_is_found_by_its_own_id(known: list[str], data: st.DataObject) -> None:
    for id in known:
        assert ids.match_builder(id, known) == id


def test_names_never_end_before_fifty_draws() -> None:
    def same() -> Iterator[str]:
        return itertools.repeat("aaaa")

    assert len(list(ids.task_names("x", same().__next__))) == 50
