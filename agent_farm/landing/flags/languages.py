"""Recognises tests by language: where they are, how one begins and asserts, and how one is skipped."""

from __future__ import annotations

import re
from re import Pattern

from msgspec import Struct

_TEST_PATHS = re.compile(
    r"(?:^|/)(?:tests?|specs?|__tests__|e2e|testing)/"
    r"|(?:^|/)test_[^/]*\.py$|_tests?\.(?:py|go|rb|exs)$|_spec\.rb$|(?:^|/)conftest\.py$"
    r"|\.(?:test|spec)\.[cm]?[jt]sx?$|(?:^|/)[^/]*Tests?\.(?:java|kt)$|(?:^|/)Test[A-Z][^/]*\.java$|IT\.java$"
)


class Language(Struct, frozen=True):
    """Patterns for single lines. The group in `begins` is the test's name, if the line has it.

    `exact` is an assertion that pins a value, `hollow` one that no code can fail.
    """

    begins: Pattern[str]
    skips: Pattern[str]
    asserts: Pattern[str]
    exact: Pattern[str]
    hollow: Pattern[str]
    # tests may be in any file of the language, not only in files of their own
    inline: bool = False


def _language(*, inline: bool = False, **patterns: str) -> Language:
    return Language(inline=inline, **{name: re.compile(pattern) for name, pattern in patterns.items()})


_PYTHON = _language(
    begins=r"^\s*(?:async\s+)?def\s+(test\w*)\s*\(|^\s*class\s+(Test\w*)",
    skips=r"mark\.(?:skip|skipif|xfail)\b|\bpytest\.(?:skip|xfail|importorskip)\s*\(|@(?:unittest\.)?"
    r"(?:skip\w*|expectedFailure)\b|\.skipTest\s*\(|\bSkipTest\b|__test__\s*=\s*False|\bcollect_ignore",
    asserts=r"^\s*assert\b|\bself\.assert\w+\s*\(|\bpytest\.raises\b|\bassert_\w+\s*\(",
    exact=r"^\s*assert\b.*(?<![<>!=])==|assert(?:Equal|Equals|Is|DictEqual|ListEqual|CountEqual)\s*\(|\bassert_called_once_with\b",
    hollow=r"^\s*assert\s+(?:\(?\s*)?(?:True|1|not False|(\S+)\s*==\s*\1)\s*\)?\s*(?:[#,]|$)"
    r"|^\s*assert\b.*\bor\s+(?:True|1)\b|assertTrue\s*\(\s*True\s*\)|assertFalse\s*\(\s*False\s*\)",
)
_SCRIPT = _language(
    begins=r"^\s*(?:it|test)(?:\.\w+)*\s*\(\s*(?:\"([^\"]*)\"|'([^']*)'|`([^`]*)`)",
    skips=r"\b(?:it|test|describe|context|suite)(?:\.\w+)*\.(?:skip|skipIf|only|todo|fixme|failing|fails)\b"
    r"|\b(?:xit|xtest|xdescribe|fit|fdescribe)\s*\(|\bthis\.skip\s*\(|\btest\.skip\s*\(|\{\s*skip:\s*true",
    asserts=r"\bexpect\s*\(|\bassert(?:\.\w+)?\s*\(|\bshould\.|\.should\b|\bt\.(?:is|deepEqual|true|ok|equal)\s*\(",
    exact=r"\.(?:toBe|toEqual|toStrictEqual|toHaveBeenCalledWith|toMatchObject|equal|deepEqual|strictEqual|eql)\s*\(",
    hollow=r"expect\s*\(\s*(?:true|1|!0)\s*\)\.to(?:Be|Equal|BeTruthy)\b|assert(?:\.ok)?\s*\(\s*(?:true|1)\s*[,)]"
    r"|expect\s*\(\s*(\w+)\s*\)\.to(?:Be|Equal)\s*\(\s*\1\s*\)",
)
_GO = _language(
    begins=r"^func\s+((?:Test|Fuzz|Example)\w*)\s*\(|\bt\.Run\s*\(\s*\"([^\"]*)\"",
    skips=r"\bt\.Skip(?:f|Now)?\s*\(|^//go:build\s+(?:ignore|never)|^//\s*\+build\s+ignore|testing\.Short\s*\(",
    asserts=r"\bt\.(?:Error|Errorf|Fatal|Fatalf|Fail|FailNow)\s*\(|\b(?:assert|require)\.\w+\s*\(",
    exact=r"\b(?:assert|require)\.(?:Equal|Equalf|EqualValues|JSONEq|ElementsMatch)\s*\(|\breflect\.DeepEqual\b|!=",
    hollow=r"\b(?:assert|require)\.True\s*\(\s*t\s*,\s*true\b|\bif\s+false\b",
)
_RUST = _language(
    begins=r"^\s*#\[(?:\w+::)*test\b()",
    skips=r"#\[ignore\b|#\[cfg\s*\(\s*any\s*\(\s*\)\s*\)\]|#\[should_panic\b",
    asserts=r"\b(?:debug_)?assert(?:_eq|_ne|_matches)?!\s*\(|\bpanic!\s*\(",
    exact=r"\bassert_eq!\s*\(",
    hollow=r"\bassert!\s*\(\s*true\b|\bassert_eq!\s*\(\s*(\w+)\s*,\s*\1\s*[,)]",
    inline=True,
)
_JAVA = _language(
    begins=r"^\s*@(?:org\.junit\.)?(?:Test|ParameterizedTest|RepeatedTest)\b()",
    skips=r"@(?:Disabled|Ignore)\w*\b|\bassume(?:True|False|That)\s*\(|@Test\s*\(\s*enabled\s*=\s*false",
    asserts=r"\bassert\w*\s*\(|\bverify\s*\(|\bfail\s*\(",
    exact=r"\bassert(?:Equals|ArrayEquals|Same|IterableEquals)\s*\(|\.isEqualTo\s*\(",
    hollow=r"\bassertTrue\s*\(\s*true\s*[,)]|\bassertFalse\s*\(\s*false\s*[,)]|\bassertEquals\s*\(\s*(\w+)\s*,\s*\1\s*\)",
)
_RUBY = _language(
    begins=r"^\s*def\s+(test_\w+)|^\s*(?:it|specify|scenario|test)\s*\(?\s*(?:\"([^\"]*)\"|'([^']*)')",
    skips=r"^\s*(?:skip|pending)\b|^\s*(?:xit|xdescribe|xcontext|xspecify|fit|fdescribe|fcontext)\b"
    r"|,\s*(?::skip|:focus|skip:\s*true|pending:\s*true|focus:\s*true)",
    asserts=r"^\s*(?:assert|refute)\w*\b|\bexpect\s*[({]|\.(?:must|wont)_\w+|\.should\b",
    exact=r"\bassert_equal\b|\.to\s+eq\b|\.to\s+eql\b|\.must_equal\b",
    hollow=r"^\s*assert\s*\(?\s*true\b|expect\s*\(\s*(\w+)\s*\)\.to\s+eq\s*\(?\s*\1\b",
)
_ENDINGS = {
    "py": _PYTHON,
    "js jsx mjs cjs ts tsx mts cts": _SCRIPT,
    "go": _GO,
    "rs": _RUST,
    "java kt": _JAVA,
    "rb": _RUBY,
}
_BY_ENDING = {ending: language for endings, language in _ENDINGS.items() for ending in endings.split()}


def language_of(path: str) -> Language | None:
    return _BY_ENDING.get(path.rpartition(".")[2])


def is_test(path: str) -> bool:
    """By its name and directory, as the language's own tools find tests."""
    return _TEST_PATHS.search(path) is not None


def has_tests(path: str) -> bool:
    """By its name alone: a helper in a directory of tests has none."""
    return is_test(path.rpartition("/")[2]) and not path.endswith("conftest.py")


def tests_of(path: str) -> Language | None:
    """How to read the tests in that file; None if it has none."""
    language = language_of(path)
    return language if language and (language.inline or is_test(path)) else None
