"""Which of a repository's own tools would walk into builders' worktrees, and the line that stops each.

`.builders/` is kept out of git through `.git/info/exclude`. Many tools read that file, or pass over every
hidden directory (ruff, mypy, pyright, tsc, go and ripgrep do one or the other); only the others are named.
Each line also holds inside a worktree, where the same configuration must not hide the builder's own files.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from fnmatch import fnmatch
from pathlib import Path
from typing import Any

from agent_farm.farm.tool_configs import SCRIPTS, ToolConfigs, table, words
from agent_farm.paths import STATE_NAME, WORKTREES_NAME

_WORKTREES = f"/{WORKTREES_NAME}/"
_STATE = f"/{STATE_NAME}/"


@dataclass(frozen=True, slots=True)
class IgnoreLine:
    """For `tool`, `line` belongs into `file`."""

    tool: str
    file: str
    line: str


def ignore_lines(root: Path) -> tuple[IgnoreLine, ...]:
    """Only what is needed and not there yet, in a fixed order."""
    configs = ToolConfigs(root)
    return tuple(line for tool in _TOOLS for line in tool(configs))


def _pytest(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """pytest passes over hidden directories until `norecursedirs` is set without `.*`."""
    for file, settings in _pytest_settings(configs):
        if settings is None:
            continue
        skipped = words(settings.get("norecursedirs"))
        paths = words(settings.get("testpaths"))
        walks = not paths or any(path.strip("./") == "" for path in paths)
        if skipped and walks and not any(fnmatch(WORKTREES_NAME, pattern) for pattern in skipped):
            yield IgnoreLine("pytest", file, f"norecursedirs: {WORKTREES_NAME}")
        return


def _pytest_settings(configs: ToolConfigs) -> Iterator[tuple[str, dict[str, Any] | None]]:
    """In the order in which pytest looks; the first that exists is the only one it reads."""
    for file in ("pytest.toml", ".pytest.toml"):
        yield file, table(configs.toml(file), "pytest")
    for file in ("pytest.ini", ".pytest.ini"):
        yield file, None if configs.text(file) is None else configs.ini(file, "pytest") or {}
    settings = configs.tool("pytest")
    yield "pyproject.toml", settings and (table(settings, "ini_options") or settings)
    yield "tox.ini", configs.ini("tox.ini", "pytest")
    yield "setup.cfg", configs.ini("setup.cfg", "tool:pytest")


def _ruff(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """ruff reads git's exclude file unless it is told not to."""
    for file in (".ruff.toml", "ruff.toml", "pyproject.toml"):
        settings = configs.tool("ruff") if file == "pyproject.toml" else configs.toml(file)
        if settings and settings.get("respect-gitignore") is False:
            if WORKTREES_NAME not in str(settings):
                yield IgnoreLine("ruff", file, f'extend-exclude = ["{WORKTREES_NAME}"]')
            return


def _jest(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """`<rootDir>` keeps the pattern from matching inside a builder, whose own path holds `.builders/`."""
    if not configs.depends_on("jest"):
        return
    file = configs.config("jest.config", (*SCRIPTS, "json")) or "package.json"
    text = configs.text(file) or ""
    if file == "package.json":
        text = json.dumps(configs.package.get("jest", {}))
    if WORKTREES_NAME not in text and not re.search(r"\b(roots|rootDir|projects)\b[\"']?\s*:", text):
        yield IgnoreLine("jest", file, f'modulePathIgnorePatterns: ["<rootDir>/{WORKTREES_NAME}/"]')


def _vitest(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    if not configs.depends_on("vitest"):
        return
    file = configs.config("vitest.config") or configs.config("vite.config") or "vitest.config.ts"
    text = configs.text(file) or ""
    if WORKTREES_NAME not in text and not re.search(r"\b(include|dir|root|projects)\s*:", text):
        line = f'test: {{ exclude: [...configDefaults.exclude, "{WORKTREES_NAME}/**"] }}'
        yield IgnoreLine("vitest", file, line)


def _vite(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """The development server watches every file below its root."""
    file = configs.config("vite.config")
    if file is None or not configs.depends_on("vite"):
        return
    text = configs.text(file) or ""
    told = re.search(rf"\bwatch\s*:[^}}]*{re.escape(WORKTREES_NAME)}", text)
    if not told and not re.search(r"\broot\s*:", text):
        line = f'server: {{ watch: {{ ignored: [path.resolve("{WORKTREES_NAME}/**")] }} }}'
        yield IgnoreLine("vite", file, line)


def _eslint(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """A flat configuration lints hidden directories; the older form passes over them."""
    file = configs.config("eslint.config")
    if file is not None and WORKTREES_NAME not in (configs.text(file) or ""):
        yield IgnoreLine("eslint", file, f'{{ ignores: ["{WORKTREES_NAME}/"] }}')


def _prettier(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    used = configs.depends_on("prettier") or any(configs.root.glob(".prettierrc*"))
    if used and not any(configs.ignores(file, _WORKTREES) for file in (".prettierignore", ".gitignore")):
        yield IgnoreLine("prettier", ".prettierignore", _WORKTREES)


def _black(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """black reads .gitignore and no other ignore file of git's."""
    settings = configs.tool("black")
    if settings is None or WORKTREES_NAME in str(settings):
        return
    if not configs.ignores(".gitignore", _WORKTREES):
        yield IgnoreLine("black", ".gitignore", _WORKTREES)


def _hatch(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """A source distribution holds all that .gitignore does not name, builders and `af`'s own files too."""
    build = table(configs.pyproject, "build-system") or {}
    targets = table(table(configs.tool("hatch") or {}, "build") or {}, "targets") or {}
    chosen = {"include", "only-include"} & set(table(targets, "sdist") or {})
    if build.get("build-backend") == "hatchling.build" and not chosen:
        yield from _both("hatch", ".gitignore", configs)


def _npm(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """`npm publish` packs all that its ignore file does not name, unless `files` says what to pack."""
    package = configs.package
    if "name" in package and "version" in package and not package.get("private") and "files" not in package:
        file = ".npmignore" if configs.text(".npmignore") is not None else ".gitignore"
        yield from _both("npm", file, configs)


def _docker(configs: ToolConfigs) -> Iterator[IgnoreLine]:
    """The build context is everything that .dockerignore does not name."""
    names = ("Dockerfile", "Containerfile")
    if any((configs.root / name).is_file() for name in names):
        yield from _both("docker", ".dockerignore", configs)


def _both(tool: str, file: str, configs: ToolConfigs) -> Iterator[IgnoreLine]:
    for line in (_STATE, _WORKTREES):
        if not configs.ignores(file, line):
            yield IgnoreLine(tool, file, line)


_TOOLS: tuple[Callable[[ToolConfigs], Iterator[IgnoreLine]], ...] = (
    _pytest,
    _ruff,
    _black,
    _hatch,
    _jest,
    _vitest,
    _vite,
    _eslint,
    _prettier,
    _npm,
    _docker,
)
