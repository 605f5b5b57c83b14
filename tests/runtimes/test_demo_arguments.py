"""The demo agent's own command line, which `runtimes.demo.args` adds to."""

from __future__ import annotations

import subprocess
import sys

import pytest

from agent_farm.runtimes.demo import AGENT


@pytest.mark.parametrize(
    ("words", "unknown"),
    [
        ([], ""),
        (["batch"], "batch"),
        (["headless", "--settings", "x"], "--settings"),
        (["headless", "--model"], "--model"),
        (["headless", "--permissions", "most"], "most"),
        (["headless", "--home", "/x", "more"], "more"),
    ],
    ids=lambda one: " ".join(one) if isinstance(one, list) else one,
)
def test_what_it_does_not_know_is_named(words: list[str], unknown: str) -> None:
    done = subprocess.run(
        [sys.executable, "-I", "-S", str(AGENT), *words],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stderr) == (2, f"demo: unknown argument {unknown!r}\n")


def test_the_last_of_two_values_holds_and_lists_have_them_all() -> None:
    code = (
        "from agent_farm.runtimes.demo_agent.arguments import parse_arguments as parse\n"
        "found = parse(['headless', '--read', '/a', '--model', 'x', '--model', 'y', '--read', '/b'])\n"
        "print(found.mode, found.model, *found.read, found.keep, found.permissions)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "headless y /a /b [] edit\n"
