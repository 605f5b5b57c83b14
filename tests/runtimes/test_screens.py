"""The screen rules over recorded screens of the real CLIs, with a score."""

from __future__ import annotations

from collections import defaultdict

from agent_farm.runtimes import get_adapter
from tests.runtimes.screens import SCREENS, label_of

EXPECTED = {"answered": "ready"}


def test_every_recorded_screen_is_read_for_what_it_is() -> None:
    score: dict[str, list[str]] = defaultdict(list)
    wrong = []
    for file in sorted(SCREENS.glob("*.txt")):
        runtime, label = file.name.split(".")[:2]
        expected = EXPECTED.get(label, label)
        read = label_of(file.read_text(), get_adapter(runtime).cli.screen)
        score[runtime].append(label)
        if read != expected:
            wrong.append(f"{file.name}: read as {read}")
    total = sum(map(len, score.values()))
    print(f"{total - len(wrong)} of {total} screens")
    assert total >= 25
    assert wrong == []


def test_no_screen_of_one_runtime_is_a_dialog_without_its_question() -> None:
    for file in sorted(SCREENS.glob("*.ready.txt")):
        adapter = get_adapter(file.name.split(".")[0])
        assert label_of("$ \n", adapter.cli.screen) == "unknown"  # a bare shell is never ready
