"""Questions and sources that want to be more than that."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, UsageError
from tests.ask.stage import Stage


@pytest.mark.parametrize("question", ["", "  \n", "a\0b", "\ud800"])
def test_impossible_questions_are_refused(stage: Stage, app: Path, question: str) -> None:
    with pytest.raises(UsageError, match="question"):
        stage.runner.ask(sources=["app"], question=question)
    assert not stage.record.exists()
    assert stage.left() == []


@pytest.mark.parametrize(
    "question",
    [
        "-rf --help",
        "$(touch pwned) `id` ; && |",
        "{prompt_file} {source_dirs}",
        "\x1b[31m\r\n\t'\"\\",
        "日本語 🚀",
    ],
)
def test_questions_arrive_byte_for_byte(stage: Stage, app: Path, question: str) -> None:
    stage.use(stdin="{prompt_file}")
    stage.runner.ask(sources=["app"], question=question)
    assert f"# Question\n\n{question}\n\n# Available" in stage.seen()["stdin"]


def test_question_of_a_megabyte_arrives_whole(stage: Stage, app: Path) -> None:
    question = "why? " * 200_000 + "end"
    stage.use(stdin="{prompt_file}")
    stage.runner.ask(sources=["app"], question=question)
    assert question in stage.seen()["stdin"]


def test_prompt_too_long_for_an_argument_says_so(stage: Stage, app: Path) -> None:
    stage.use("{agent} {prompt}")
    with pytest.raises(AgentFarmError, match="cannot be started") as caught:
        stage.runner.ask(sources=["app"], question="why? " * 200_000)
    assert "{prompt_file}" in str(caught.value.why)
    assert stage.left() == []


def test_path_that_looks_like_a_placeholder_is_not_filled(stage: Stage) -> None:
    path = stage.directory("{prompt_file}$(id)")
    stage.sources.add("app", str(path))
    stage.use("{agent} {source_dirs}")
    stage.runner.ask(sources=["app"], question="Why?")
    assert stage.seen()["argv"] == [str(path)]


def test_same_source_twice_is_one(stage: Stage, app: Path) -> None:
    stage.use("{agent} {source_dirs}")
    stage.runner.ask(sources=["app", "app"], question="Why?")
    assert stage.seen()["argv"] == [str(app)]


def test_link_out_of_a_source_is_neither_followed_nor_removed(stage: Stage, app: Path) -> None:
    secret = stage.file("secret", "private key")
    (app / "evil").symlink_to(secret)
    (app / "loop").symlink_to(app)
    stage.runner.ask(sources=["app"], question="Why?")
    assert "private key" not in str(stage.seen()["files"])
    assert (app / "evil").is_symlink()
    assert secret.read_text() == "private key"


def test_source_removed_while_the_agent_works(stage: Stage, app: Path) -> None:
    stage.script(f"os.rename({str(app)!r}, {str(app) + '.moved'!r})\nprint('done')")
    assert stage.runner.ask(sources=["app"], question="Why?") == {"answer": "done\n"}
    assert (Path(f"{app}.moved") / "main.py").exists()


def test_large_file_is_linked_and_not_copied(stage: Stage) -> None:
    path = stage.root / "large"
    with path.open("wb") as file:
        file.truncate(64 << 20)
    stage.sources.add("large", str(path))
    stage.script("print(sum(s.st_size for s in map(os.lstat, ('prompt.md', 'large'))))")
    answer = stage.runner.ask(sources=["large"], question="Why?")["answer"]
    assert int(answer) < 10_000
    assert not any(name.startswith("lctx-files") for name in stage.seen()["files"])


def test_file_lies_where_every_cli_may_read_it(stage: Stage) -> None:
    stage.sources.add("readme", str(stage.file("README.md", "read me\n")))
    stage.runner.ask(sources=["readme"], question="Why?")
    seen = stage.seen()
    assert seen["files"]["lctx-files/readme/README.md"] == "read me\n"
    assert f"{seen['cwd']}/lctx-files/readme/README.md" in seen["files"]["prompt.md"]


@pytest.mark.slow
def test_hundred_thousand_files_cost_nothing(stage: Stage) -> None:
    path = stage.directory("many")
    for number in range(100):
        (path / str(number)).mkdir()
        for file in range(1000):
            os.close(os.open(path / str(number) / str(file), os.O_CREAT | os.O_WRONLY))
    small = stage.directory("small")
    stage.sources.add("many", str(path))
    stage.sources.add("small", str(small))

    def seconds(name: str) -> float:
        started = os.times()
        stage.runner.ask(sources=[name], question="Why?")
        return sum(os.times()[:4]) - sum(started[:4])  # of the processors, ours and our children's

    few, many = min(seconds("small") for _ in range(5)), min(seconds("many") for _ in range(5))
    assert many < few * 2 + 0.05
    assert sum(1 for _ in path.rglob("*")) == 100_101
    shutil.rmtree(path)
