from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as some

from agent_farm import lean

ROOT = Path(__file__).parents[2]
VALUES = some.recursive(
    some.none() | some.booleans() | some.integers() | some.floats(allow_nan=False) | some.text(),
    lambda below: some.lists(below) | some.dictionaries(some.text(), below),
)
NO_JSON = ("", " ", "{", "[1,]", "{} x", "nul", '"\n"', '{"a" 1}', "-", '{"a": }', "'a'", "\ufeff{}")


@given(VALUES)
def test_values_are_written_and_read_as_by_json(value: Any) -> None:
    assert lean.dumps(value) == json.dumps(value)
    assert lean.dumps(value, (",", ":")) == json.dumps(value, separators=(",", ":"))
    assert lean.loads(f" {json.dumps(value)}\n") == lean.loads(json.dumps(value).encode()) == value


def test_what_is_no_number_is_read_as_by_json() -> None:
    assert str(lean.loads("[NaN, Infinity, -Infinity]")) == str(json.loads("[NaN, Infinity, -Infinity]"))


@pytest.mark.parametrize("content", NO_JSON)
def test_no_json_is_a_value_error(content: str) -> None:
    with pytest.raises(ValueError, match=r"Expect|Extra|Invalid|BOM"):
        lean.loads(content)


def test_it_is_so_where_json_is_not_loaded_and_loads_little() -> None:
    code = (
        f"import sys; sys.path.append({str(ROOT)!r}); from agent_farm.lean import dumps, loads;"
        "assert loads(dumps({'a': [1.5, None, 'é']})) == {'a': [1.5, None, 'é']};"
        "print(sorted({'json', 're', 'enum', 'collections', 'functools'} & sys.modules.keys()))\n"
        f"for content in {NO_JSON!r}:\n"
        "    try:\n"
        "        print('read', content, loads(content))\n"
        "    except ValueError:\n"
        "        pass\n"
        "    for name in {'json', 'json.decoder', 'json.scanner'} & sys.modules.keys(): del sys.modules[name]"
    )
    done = subprocess.run(
        [sys.executable, "-I", "-S", "-X", "utf8", "-c", code], capture_output=True, text=True, check=True
    )
    assert done.stdout == "[]\n"


def test_without_the_parts_in_c_json_does_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lean, "make_scanner", None)
    assert lean.loads(lean.dumps({"a": ["é"]}, (",", ":"))) == {"a": ["é"]}


def test_what_is_not_json_is_refused() -> None:
    with pytest.raises(TypeError, match="object"):
        lean.dumps(object())


def test_only_the_named_errors_are_suppressed() -> None:
    with lean.suppress(KeyError, OSError):
        raise FileNotFoundError
    with pytest.raises(ValueError, match="other"), lean.suppress(KeyError):
        raise ValueError("other")
