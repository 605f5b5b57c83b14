"""Libraries work with what stands in for the modules they seldom need."""

from __future__ import annotations

import inspect
import subprocess
import sys

import pytest

from agent_farm.cli.quick_start import _cleandoc

CODE = """
import sys
import agent_farm.cli
from agent_farm.cli.quick_start import load_libraries
load_libraries()
there = set(sys.modules)
import click, msgspec, pathlib, uuid
print(sorted({"inspect", "platform", "textwrap", "urllib.parse"} & there))
class Known(msgspec.Struct):
    \"""    First.\"""
print(msgspec.json.schema(Known)["$defs"]["Known"]["description"])
print(pathlib.Path("/a b").as_uri())
print(uuid._LINUX, click.core.inspect.isfunction(print), click.core.inspect.cleandoc("  a\\n    b"))
"""


@pytest.mark.skipif(sys.platform != "linux", reason="uuid asks only there")
def test_what_is_seldom_needed_is_there_when_it_is() -> None:
    done = subprocess.run([sys.executable, "-c", CODE], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\nFirst.\nfile:///a%20b\nTrue False a\nb\n"


@pytest.mark.parametrize(
    "text", ["", "Plain.", "  Indented.", "\tTab.\tInside.", " \t ", "First.\n  Then.\n"]
)
def test_help_is_cleaned_as_inspect_does(text: str) -> None:
    assert _cleandoc(text) == inspect.cleandoc(text)
