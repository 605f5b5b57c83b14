"""Flags for changes to what decides how code is checked, and for exit codes that no longer mean anything."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence

from agent_farm.builders.proof import Flag
from agent_farm.landing.flags.languages import has_tests
from agent_farm.landing.flags.parsed_diff import FileChange
from agent_farm.landing.flags.rule import TaskScope, new_lines

# Files recognised by name; and lines recognised by content, in files that also have other purposes.
_CHECK_FILES = re.compile(
    r"(?:^|/)(?:GNU)?[Mm]akefile$|\.mk$|(?:^|/)[Jj]ustfile$|(?:^|/)Taskfile\.ya?ml$|(?:^|/)Rakefile$"
    r"|(?:^|/)\.github/(?:workflows|actions)/|(?:^|/)\.gitlab-ci|(?:^|/)\.circleci/|(?:^|/)\.ci/|(?:^|/)Jenkinsfile"
    r"|(?:^|/)azure-pipelines|(?:^|/)\.travis\.yml$|(?:^|/)\.?buildkite/|(?:^|/)\.drone\.yml$"
    r"|(?:^|/)(?:pytest\.ini|\.?pytest\.toml|tox\.ini|noxfile\.py|conftest\.py|\.coveragerc|mypy\.ini|\.?ruff\.toml)$"
    r"|(?:^|/)(?:jest|vitest|karma|playwright|cypress|ava|mocha|babel|wdio)\.config|(?:^|/)\.mocharc|(?:^|/)\.rspec$"
    r"|(?:^|/)\.eslintrc|(?:^|/)eslint\.config|(?:^|/)\.pre-commit-config\.yaml$|(?:^|/)spec/spec_helper\.rb$"
    r"|(?:^|/)(?:nextest|\.nextest)\.toml$|(?:^|/)lefthook\.yml$|(?:^|/)\.husky/"
)
_MIXED_FILES = re.compile(
    r"(?:^|/)(?:pyproject\.toml|setup\.cfg|package\.json|Cargo\.toml|build\.gradle(?:\.kts)?|pom\.xml|Gemfile)$"
)
_ABOUT_CHECKS = re.compile(
    r"addopts|testpaths|norecursedirs|python_(?:files|functions|classes)|deselect|--ignore|xfail_strict|filterwarnings"
    r"|\[tool\.(?:pytest|mypy|ruff|coverage|tox)|\"(?:pre|post)?(?:test|lint|check|ci)[\w:-]*\"\s*:|\"jest\"|\"mocha\""
    r"|testPathIgnore|testMatch|fail_under|coverageThreshold|maven\.test\.skip|skipTests|ignoreFailures"
    r"|^\s*(?:test|doctest|harness|autotests)\s*=\s*false"
)
_FORCED = re.compile(
    r"\|\|\s*(?:true|:|exit\s+0|/bin/true|echo\b)|^\s*(?:exit|return)\s+0\b|;\s*(?:true|:|exit\s+0)\s*[\"']?,?\s*$"
    r"|\bset\s+\+e\b|\btrap\b.*\bexit\s+0|continue-on-error:\s*true|allow_failure:\s*true|--exit-zero\b"
    r"|--passWithNoTests|\bsys\.exit\(\s*(?:0\s*)?\)|\bos\._exit\(\s*0|\bprocess\.exit\(\s*0?\s*\)|\bexitstatus\s*=\s*0"
    r"|process\.exitCode\s*=\s*0|^\s*\.IGNORE\b|^\s*\.?SHELL(?:FLAGS)?\s*:?=|\bignoreFailures\s*=\s*true|--no-fail\b"
    r"|--bail\s*=?\s*0|-fae\b|2>&1\s*\|\s*tee\b"
)
_MAKE_IGNORES = re.compile(r"^\t@?-@?\w")
_SCRIPTS = re.compile(r"\.(?:sh|bash|zsh|bat|ps1|mk)$|(?:^|/)(?:scripts?|bin|ci|tools)/[^./]+$")
_NARROWED = re.compile(
    r"--deselect|--ignore|--exclude|collect_ignore|testPathIgnorePatterns|norecursedirs|pytest_collection_modifyitems"
    r"|pytest_ignore_collect|pytest_runtest_call|pytest_runtest_makereport|(?:^|\s)-k\s|--grep|--testNamePattern|-run\s"
    r"|pytest_pyfunc_call|deselected|\.skip\("
)


def only_checks(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    if files and all(decides(file, asked) for file in files):
        yield Flag("only-checks", files[0].path, 0, "only files that decide what is checked have changed")


def changed_checks(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    if files and not all(decides(file, asked) for file in files):
        for file in files:
            if decides(file, asked):
                yield Flag("check-changed", file.path, 0, "decides what is checked, and was changed")


def decides(file: FileChange, asked: TaskScope) -> bool:
    """Whether the file, or at least a changed line in it, decides how code is checked."""
    for path in {file.path, file.former}:
        if _CHECK_FILES.search(path) or (path in asked.scripts and not has_tests(path)):
            return True
    changed = (line for line in file.lines if line.sign != " ")
    return bool(_MIXED_FILES.search(file.path)) and any(_ABOUT_CHECKS.search(line.text) for line in changed)


def forced_exits(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    """In any file that a check may run: an exit code that no longer means anything."""
    for file in files:
        if file.is_gone or not (decides(file, asked) or _SCRIPTS.search(file.path)):
            continue
        yield from new_lines(file, _FORCED, "exit-forced", "forces an exit code")
        if file.path.lower().endswith(("makefile", ".mk")):
            yield from new_lines(file, _MAKE_IGNORES, "exit-forced", "ignores an exit code")


def narrowed_checks(files: Sequence[FileChange], asked: TaskScope) -> Iterator[Flag]:
    for file in files:
        if not file.is_gone and (decides(file, asked) or _SCRIPTS.search(file.path)):
            yield from new_lines(file, _NARROWED, "test-skipped", "leaves tests out")
