"""Which tools `af init` names: those that would walk into builders' worktrees, and no others."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.farm.ignore_lines import ignore_lines
from agent_farm.git.ignoring import exclude
from agent_farm.git.repository import find_repository
from agent_farm.paths import IGNORED_BY_GIT
from tests.conftest import Af
from tests.gitrepo import write_files

pytestmark = pytest.mark.slow

BOTH = ["/.agent-farm/", "/.builders/"]
JEST = '{"devDependencies": {"jest": "30"}}'
VITE = '{"private": true, "devDependencies": {"vite": "8", "vitest": "4"}}'
NAMED = [
    ({"pytest.ini": "[pytest]\nnorecursedirs = build\n"}, ["pytest.ini: norecursedirs: .builders"]),
    (
        {"pyproject.toml": '[tool.pytest.ini_options]\nnorecursedirs = ["build"]\ntestpaths = ["."]\n'},
        ["pyproject.toml: norecursedirs: .builders"],
    ),
    ({"ruff.toml": "respect-gitignore = false\n"}, ['ruff.toml: extend-exclude = [".builders"]']),
    ({"pyproject.toml": "[tool.black]\n"}, [".gitignore: /.builders/"]),
    (
        {"pyproject.toml": '[build-system]\nbuild-backend = "hatchling.build"\n'},
        [f".gitignore: {line}" for line in BOTH],
    ),
    ({"package.json": JEST}, ['package.json: modulePathIgnorePatterns: ["<rootDir>/.builders/"]']),
    (
        {"jest.config.js": "", "package.json": JEST},
        ['jest.config.js: modulePathIgnorePatterns: ["<rootDir>/.builders/"]'],
    ),
    (
        {"package.json": VITE, "vite.config.ts": ""},
        [
            'vite.config.ts: test: { exclude: [...configDefaults.exclude, ".builders/**"] }',
            'vite.config.ts: server: { watch: { ignored: [path.resolve(".builders/**")] } }',
        ],
    ),
    ({"eslint.config.mjs": "export default []\n"}, ['eslint.config.mjs: { ignores: [".builders/"] }']),
    ({".prettierrc": "{}"}, [".prettierignore: /.builders/"]),
    ({"package.json": '{"name": "x", "version": "1.0.0"}'}, [f".gitignore: {line}" for line in BOTH]),
    (
        {"package.json": '{"name": "x", "version": "1.0.0"}', ".npmignore": "/.builders/\n"},
        [".npmignore: /.agent-farm/"],
    ),
    ({"Dockerfile": "FROM scratch\nCOPY . .\n"}, [f".dockerignore: {line}" for line in BOTH]),
]
UNNAMED = [
    {},
    {"pyproject.toml": '[tool.pytest.ini_options]\nminversion = "8"\n[tool.ruff]\n[tool.mypy]\n'},
    {"pytest.ini": "[pytest]\nnorecursedirs = build .*\n"},
    {"pytest.ini": "[pytest]\nnorecursedirs = build\ntestpaths = tests\n"},
    {"pytest.ini": "", "tox.ini": "[pytest]\nnorecursedirs = build\n"},
    {"ruff.toml": "line-length = 100\n"},
    {"ruff.toml": 'respect-gitignore = false\nextend-exclude = [".builders"]\n'},
    {"pyproject.toml": "[tool.black]\n", ".gitignore": "/.builders/\n"},
    {"tsconfig.json": "{}", "go.mod": "module x\n", "Cargo.toml": '[workspace]\nmembers = ["crates/*"]\n'},
    {"package.json": '{"devDependencies": {"jest": "30"}, "jest": {"roots": ["src"]}}'},
    {"package.json": '{"name": "x", "version": "1.0.0", "private": true}', ".eslintrc.json": "{}"},
    {"package.json": '{"name": "x", "version": "1.0.0", "files": ["dist"]}'},
    {"Dockerfile": "FROM scratch\n", ".dockerignore": ".*\n"},
    {"pyproject.toml": "not = [toml", "package.json": "{", "tox.ini": "no section", "setup.cfg": "\x00"},
]


@pytest.mark.parametrize(
    ("files", "lines"), NAMED, ids=lambda value: " ".join(value) if isinstance(value, dict) else ""
)
def test_names_a_tool_that_would_walk_in(tmp_path: Path, files: dict[str, str], lines: list[str]) -> None:
    write_files(tmp_path, files)
    assert [f"{item.file}: {item.line}" for item in ignore_lines(tmp_path)] == lines


@pytest.mark.parametrize("files", UNNAMED, ids=" ".join)
def test_names_no_tool_that_would_not(tmp_path: Path, files: dict[str, str]) -> None:
    write_files(tmp_path, files)
    assert ignore_lines(tmp_path) == ()


def test_init_shows_one_line_for_tools_that_share_it(repo: Path, af: Af) -> None:
    package = '{"name": "x", "version": "1.0.0"}'
    write_files(repo, {"package.json": package, "pyproject.toml": "[tool.black]\n"})
    assert "  .gitignore: /.builders/  (black, npm)\n" in af("init").stderr


CHECKS = {
    "pytest": (["pytest", "-q", "--collect-only", "-p", "no:cacheprovider"], "test_other.py"),
    "ruff": (["ruff", "check", "--no-cache", "--show-files", "."], "test_other.py"),
    "mypy": (["mypy", "--cache-dir", "/dev/null", "."], "other.py"),
}


@pytest.mark.parametrize("tool", CHECKS)
@pytest.mark.parametrize("walks", [False, True])
def test_the_real_tools_do_as_is_said_of_them(repo: Path, tool: str, walks: bool) -> None:
    """Each is asked twice: as it comes, and told in its own way to look everywhere (mypy cannot be)."""
    files = {"test_here.py": "def test_a(): ...\n"}
    other = {"test_other.py": "def test_b(): ...\n", "other.py": 'x: int = "a"\n'}
    write_files(repo, files)
    write_files(repo / ".builders/task-1", other)
    exclude(find_repository(repo), IGNORED_BY_GIT)
    if walks:
        write_files(
            repo,
            {"pytest.ini": "[pytest]\nnorecursedirs = build\n", "ruff.toml": "respect-gitignore = false\n"},
        )
    command, name = CHECKS[tool]
    done = subprocess.run(
        [sys.executable, "-m", *command], cwd=repo, capture_output=True, text=True, check=False, timeout=120
    )
    assert (name in done.stdout) == (tool in {item.tool for item in ignore_lines(repo)})
    assert (name in done.stdout) == (walks and tool != "mypy")
