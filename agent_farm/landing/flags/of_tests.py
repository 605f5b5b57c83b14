"""Flags for tests that were deleted, skipped or weakened."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence

from agent_farm.builders.proof import Flag
from agent_farm.landing.flags.languages import Language, has_tests, is_test, tests_of
from agent_farm.landing.flags.parsed_diff import DiffLine, FileChange
from agent_farm.landing.flags.rule import TaskScope, cut, new_lines, shown

_ENDS = re.compile(
    r"^\s*(?:return|return;|pass|sys\.exit\(.*\)|os\._exit\(.*\)|process\.exit\(.*\);?|exit 0)\s*$"
)


def gone_tests(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    """Tests are compared by name: one that moved to another file still exists."""
    added = Counter(name for file in files for name, _ in _tests(file, file.added, file.path))
    for file in files:
        lost = []
        for name, line in _tests(file, file.removed, file.former):
            if added[name] > 0:
                added[name] -= 1
            else:
                lost.append((name, line))
        if lost:
            names = ", ".join(dict.fromkeys(name for name, _ in lost if name)) or f"{len(lost)} tests"
            yield Flag("test-deleted", file.path, 0, cut(f"gone: {names}"))
        elif file.is_gone and is_test(file.former) and not _is_moved(file, files):
            yield Flag("test-deleted", file.path, 0, "the file is gone")
        elif not file.is_gone and has_tests(file.former) and not has_tests(file.path):
            yield Flag("test-deleted", file.path, 0, f"was {file.former}, where tests are collected")


def _is_moved(gone: FileChange, files: Sequence[FileChange]) -> bool:
    """Whether every line of it was added in another file."""
    lines = {line.text.strip() for line in gone.removed if line.text.strip()}
    there = {line.text.strip() for file in files if file is not gone for line in file.added}
    return lines <= there


def _tests(file: FileChange, lines: Iterable[DiffLine], path: str) -> Iterator[tuple[str, int]]:
    language = tests_of(path)
    if language is None:
        return
    for line in lines:
        if match := language.begins.search(line.text):
            yield next(filter(None, match.groups()), ""), line.number


def skipped_tests(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    for file in files:
        language = tests_of(file.path)
        if language is None or file.is_gone:
            continue
        yield from new_lines(file, language.skips, "test-skipped", "skips a test")
        yield from _left_early(file, language)


def _left_early(file: FileChange, language: Language) -> Iterator[Flag]:
    """A test that is ended by its new first statement."""
    began = False
    for line in file.lines:
        if line.sign == "-" or not line.text.strip():
            continue
        if began and line.sign == "+" and _ENDS.match(line.text):
            yield Flag("test-skipped", file.path, line.number, shown("ends a test early", line))
        began = language.begins.search(line.text) is not None


def weakened_tests(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    for file in files:
        language = tests_of(file.path)
        if language is None or file.is_gone:
            continue
        yield from new_lines(file, language.hollow, "test-weakened", "cannot fail")
        moved = {line.text.strip() for other in files if other is not file for line in other.added}
        removed = [
            line
            for line in file.removed
            if language.asserts.search(line.text) and line.text.strip() not in moved
        ]
        added = [line for line in file.added if language.asserts.search(line.text)]
        lost = _exact(removed, language) - _exact(added, language)
        if len(removed) > len(added):
            yield Flag("test-weakened", file.path, 0, _fewer(len(removed) - len(added), "assertion"))
        elif lost > 0:
            yield Flag("test-weakened", file.path, 0, _fewer(lost, "exact comparison"))
        yield from _other_expectations(file.path, removed, added)


def _exact(lines: Iterable[DiffLine], language: Language) -> int:
    return sum(language.exact.search(line.text) is not None for line in lines)


def _fewer(number: int, what: str) -> str:
    return f"{number} {what}{'s' if number > 1 else ''} fewer"


def _other_expectations(path: str, removed: Sequence[DiffLine], added: Sequence[DiffLine]) -> Iterator[Flag]:
    """The same call is now expected to give another result."""
    before = {_question(line.text): line.text.strip() for line in removed}
    for line in added:
        question = _question(line.text)
        if question in before and before[question] != line.text.strip():
            yield Flag("test-changed", path, line.number, shown("expects something else", line))


def _question(text: str) -> str:
    """An assertion without the value that it compares to."""
    head = re.split(r"==|!=|<=|>=|\bin\b|\bis\b|\.to\w*\b", text, maxsplit=1)[0].strip()
    if head != text.strip():
        return head
    return text.strip().rpartition(",")[0] or text.strip()
