"""The prompt and its template."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agent_farm.ask.template import (
    InvalidTemplate,
    default_template,
    fill_template,
    load_template,
    require_placeholders,
)
from tests.ask.stage import Stage


def template_of(stage: Stage) -> Path:
    return stage.config.directory / "prompt_template.md"


def test_placeholders_become_question_and_sources(stage: Stage, app: Path) -> None:
    stage.sources.add("docs", str(stage.directory("docs")))
    template_of(stage).write_text("Q=${question}\nS=\n${sourcesList}\nP=\n${sourcePaths}\n")
    stage.runner.ask(sources=["app", "docs"], question="How do I create a tool?")
    prompt = stage.seen()["files"]["prompt.md"]
    assert prompt.startswith("Q=How do I create a tool?\nS=\n- ./app/\n- ./docs/\nP=\n- app: ")
    assert str(app) in prompt, "tools that follow no links need the real path"


def test_users_template_is_kept_byte_for_byte(stage: Stage, app: Path) -> None:
    text = b"\xef\xbb\xbf# Mine\r\n${question}\r\n\xff\xfe$HOME {prompt_file} ${other}\r\n${sourcesList}"
    template_of(stage).write_bytes(text)
    stage.runner.ask(sources=["app"], question="Q")
    prompt = stage.seen()["files"]["prompt.md"].encode("utf-8", "surrogateescape")
    assert prompt == b"\xef\xbb\xbf# Mine\r\nQ\r\n\xff\xfe$HOME {prompt_file} ${other}\r\n- ./app/"
    assert template_of(stage).read_bytes() == text


def test_missing_template_is_made_beside_the_config(stage: Stage, app: Path) -> None:
    assert not template_of(stage).exists()
    stage.runner.ask(sources=["app"], question="Why?")
    assert template_of(stage).parent == stage.config.path.parent
    assert template_of(stage).read_text() == default_template()
    assert stage.seen()["files"]["prompt.md"].startswith("# Question\n\nWhy?\n")


def test_template_that_cannot_be_written_does_not_stop_the_question(stage: Stage) -> None:
    from agent_farm.ask import ConfigManager

    told: list[str] = []
    text = load_template(ConfigManager("/dev/null/lctx/config.json"), told.append)
    assert text == default_template()
    assert "packaged template" in told[0]


def test_default_template_has_its_sections_and_is_valid() -> None:
    text = default_template()
    require_placeholders(text)
    assert "# Question\n\n${question}\n" in text
    assert "# Available Sources\n\n${sourcesList}\n" in text
    assert all(tool in text for tool in ("Glob", "Grep", "Read"))


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("${sourcesList}", "Invalid prompt template: missing required placeholder ${question}"),
        ("${question}", "Invalid prompt template: missing required placeholder ${sourcesList}"),
        ("", "Invalid prompt template: missing required placeholders ${question}, ${sourcesList}"),
    ],
)
def test_missing_placeholders_are_named(stage: Stage, app: Path, text: str, message: str) -> None:
    template_of(stage).write_text(text)
    with pytest.raises(InvalidTemplate) as caught:
        stage.runner.ask(sources=["app"], question="Why?")
    assert str(caught.value) == message
    assert template_of(stage).read_text() == text
    assert stage.left() == []


@given(question=st.text(), sources=st.text())
def test_what_is_filled_in_is_never_expanded(question: str, sources: str) -> None:
    filled = fill_template("[${question}|${sourcesList}]", question=question, sources_list=sources)
    assert filled == f"[{question}|{sources}]".encode("utf-8", "surrogatepass")


def test_question_that_names_a_placeholder_is_not_expanded(stage: Stage, app: Path) -> None:
    template_of(stage).write_text("${question}\n${sourcesList}")
    stage.runner.ask(sources=["app"], question="What is ${sourcesList} and ${question}?")
    assert stage.seen()["files"]["prompt.md"].startswith("What is ${sourcesList} and ${question}?\n- ./app/")
