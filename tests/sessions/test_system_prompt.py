from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.errors import NotFound
from agent_farm.sessions.system_prompt import IncludeError, compose_system_prompt
from tests.gitrepo import write_files


def test_an_include_is_replaced_by_the_file_in_the_roster(tmp_path: Path) -> None:
    write_files(tmp_path, {"shared/NOTIFY.md": "Tell the person.\n"})
    text = "Start\n<!-- @include shared/NOTIFY.md -->\nEnd"
    assert compose_system_prompt(text, tmp_path) == "Start\nTell the person.\nEnd"


def test_includes_nest_and_stay_relative_to_the_roster(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {"shared/A.md": "A <!--@include shared/deep/B.md-->", "shared/deep/B.md": "B\n", "B.md": "no"},
    )
    assert compose_system_prompt("<!-- @include shared/A.md -->", tmp_path) == "A B"


def test_the_same_file_twice_is_no_cycle(tmp_path: Path) -> None:
    write_files(tmp_path, {"A.md": "a"})
    assert compose_system_prompt("<!-- @include A.md --><!-- @include A.md -->", tmp_path) == "aa"


def test_a_cycle_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, {"A.md": "<!-- @include B.md -->", "B.md": "<!-- @include A.md -->"})
    with pytest.raises(IncludeError) as caught:
        compose_system_prompt("<!-- @include A.md -->", tmp_path)
    assert caught.value.why == "A.md -> B.md -> A.md"


def test_a_missing_file_is_named(tmp_path: Path) -> None:
    write_files(tmp_path, {"A.md": "<!-- @include shared/GONE.md -->"})
    with pytest.raises(NotFound, match=r"shared/GONE\.md in A\.md does not exist"):
        compose_system_prompt("<!-- @include A.md -->", tmp_path)


@pytest.mark.parametrize("name", ["../secret.md", "/etc/hostname", "shared/../../secret.md", "link.md"])
def test_an_include_cannot_leave_the_roster(tmp_path: Path, name: str) -> None:
    roster = tmp_path / "roster"
    write_files(tmp_path, {"secret.md": "secret", "roster/x.md": "x"})
    (roster / "link.md").symlink_to(tmp_path / "secret.md")
    with pytest.raises(IncludeError, match="leaves the roster"):
        compose_system_prompt(f"<!-- @include {name} -->", roster)


def test_the_shared_snippets_are_appended_in_order_with_memory_last(tmp_path: Path) -> None:
    write_files(
        tmp_path,
        {
            "shared/BUTLER_SKILLS.md": "skills\n",
            "shared/MCP_LOGGING.md": "<!-- @include x.md -->",
            "x.md": "logging",
        },
    )
    composed = compose_system_prompt("base\n", tmp_path, "## remembered")
    assert composed == "base\n\nskills\n\nlogging\n\n## remembered"


def test_without_snippets_and_memory_it_is_the_text_itself(tmp_path: Path) -> None:
    assert compose_system_prompt("base", tmp_path) == "base"


def test_memory_follows_after_one_blank_line(tmp_path: Path) -> None:
    assert compose_system_prompt("base\n\n\n", tmp_path, "memory") == "base\n\nmemory"
