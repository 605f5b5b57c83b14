"""Builders chosen by how they are instead of by their ids, at every verb over several."""

from __future__ import annotations

import json

import pytest

from tests.conftest import Af


@pytest.fixture
def three(af: Af) -> tuple[str, str, str]:
    """One that asks, one whose work has landed, one that has nothing to show yet."""
    asks = af("spawn", "[[ask:May I?]]", "--runtime", "demo").stdout.strip()
    landed = af("spawn", "Write a line about cats into cats.md", "--runtime", "demo").stdout.strip()
    empty = af("spawn", "--shell", "--runtime", "demo").stdout.strip()
    assert af("wait", asks, landed, empty, "--timeout", "300").returncode == 0
    assert af("merge", landed).returncode == 0
    return asks, landed, empty


def shown(af: Af, *words: str) -> set[str]:
    return {one["id"] for one in json.loads(af("status", "--json", *words).stdout)["builders"]}


def test_filters_choose_and_prune_takes_what_has_landed(af: Af, three: tuple[str, str, str]) -> None:
    asks, landed, empty = three
    assert shown(af, "--needs-you") == {asks}
    assert shown(af, "--landed") == {landed}
    assert shown(af, "--idle") == {landed, empty}
    assert shown(af, "@idle", "@waiting") == {asks, landed, empty}
    sent = af("send", "--idle", "--json", "[[say:hello]]")
    assert {one["id"] for one in json.loads(sent.stdout)["deliveries"]} == {landed, empty}
    assert af("wait", "--idle", landed, "--timeout", "300").returncode == 0
    plain = af("prune")
    assert "hint: af prune --landed" in plain.stderr
    done = af("prune", "--landed", "--json")
    assert [one["id"] for one in json.loads(done.stdout)["removed"]] == [landed]
    stopped = af("stop", "--needs-you", "--idle")
    assert set(stopped.stdout.split()) & {asks, empty} == {asks, empty}
    nobody = af("stop", "--idle", "--needs-you")
    assert nobody.returncode == 0
    assert "No builder is idle" in nobody.stderr
    assert "No builder needs you" in nobody.stderr


def test_a_word_that_stands_for_nobody_is_refused(af: Af) -> None:
    done = af("stop", "@idel")
    assert done.returncode == 2
    assert "Did you mean @idle?" in done.stderr
