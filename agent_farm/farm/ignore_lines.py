"""Which of a repository's own tools would walk into builders' worktrees, and the line that stops each one.

`.builders/` is kept out of git through `.git/info/exclude`. Many tools read that file, or skip hidden
directories (ruff, mypy, pyright, tsc, go and ripgrep do one or the other); only the others are listed here.
Each line must also work inside a worktree, where the same configuration must not hide the builder's own
files.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from agent_farm.paths import STATE_NAME, WORKTREES_NAME

_SCRIPTS = "{js,mjs,cjs,ts,mts,cts}"
_WORKTREES = (f"/{WORKTREES_NAME}/",)
_BOTH = (f"/{STATE_NAME}/", *_WORKTREES)
_OURS = re.escape(WORKTREES_NAME)


class IgnoreLine(Struct, frozen=True):
    """`line` belongs in `file`, for `tool`."""

    tool: str
    file: str
    line: str


class _Rule(Struct, frozen=True):
    """`lines` are needed if the tool's configuration matches `wants` but not `unless`, both patterns.

    The first of `files` that exists and has its section (after a space) is read, else it is `new`. The lines
    go into that file, or into the first of `into` that exists, else the last; unless that file, or one of
    `also`, has them. If a `package` is named, package.json must depend on it.
    """

    tool: str
    files: tuple[str, ...]
    lines: tuple[str, ...]
    wants: str = ""
    unless: str = _OURS
    into: tuple[str, ...] = ()
    also: tuple[str, ...] = ()
    package: str = ""
    new: str = ""


_RULES = (
    # skips hidden directories, unless `norecursedirs` is set without `.*`
    _Rule(
        "pytest",
        (
            *("pytest.toml", ".pytest.toml", "pytest.ini", ".pytest.ini"),
            *(r"pyproject.toml ^\[tool\.pytest", r"tox.ini ^\[pytest\]", r"setup.cfg ^\[tool:pytest\]"),
        ),
        (f"norecursedirs: {WORKTREES_NAME}",),
        wants=r"^norecursedirs\s*=",
        unless=rf"(?s:^norecursedirs\s*=((?!^\w).)*(\.\*|{_OURS}))|^testpaths\s*=\s*\[?\s*[\"']?\w",
    ),
    # reads git's exclude file by default
    _Rule(
        "ruff",
        (".ruff.toml", "ruff.toml", r"pyproject.toml ^\[tool\.ruff"),
        (f'extend-exclude = ["{WORKTREES_NAME}"]',),
        wants=r"^respect-gitignore\s*=\s*false",
    ),
    _Rule("black", (r"pyproject.toml ^\[tool\.black",), _WORKTREES, into=(".gitignore",)),
    # a source distribution contains everything that .gitignore does not name
    _Rule(
        "hatch",
        (r"pyproject.toml ^build-backend\s*=\s*.hatchling\.build",),
        _BOTH,
        unless=r"^\[tool\.hatch\.build\.targets\.sdist\][^\[]*include\s*=",
        into=(".gitignore",),
    ),
    # `<rootDir>` keeps the pattern from matching inside a builder, whose own path contains `.builders/`
    _Rule(
        "jest",
        (f"jest.config.{_SCRIPTS}", "jest.config.json", "package.json"),
        (f'modulePathIgnorePatterns: ["<rootDir>/{WORKTREES_NAME}/"]',),
        unless=rf"{_OURS}|\b(roots|rootDir|projects)\b[\"']?\s*:",
        package="jest",
    ),
    _Rule(
        "vitest",
        (f"vitest.config.{_SCRIPTS}", f"vite.config.{_SCRIPTS}"),
        (f'test: {{ exclude: [...configDefaults.exclude, "{WORKTREES_NAME}/**"] }}',),
        unless=rf"{_OURS}|\b(include|dir|root|projects)\s*:",
        package="vitest",
        new="vitest.config.ts",
    ),
    # the development server watches every file below its root
    _Rule(
        "vite",
        (f"vite.config.{_SCRIPTS}",),
        (f'server: {{ watch: {{ ignored: [path.resolve("{WORKTREES_NAME}/**")] }} }}',),
        unless=rf"\bwatch\s*:[^}}]*{_OURS}|\broot\s*:",
        package="vite",
    ),
    # a flat configuration lints hidden directories, the older form skips them
    _Rule("eslint", (f"eslint.config.{_SCRIPTS}",), (f'{{ ignores: ["{WORKTREES_NAME}/"] }}',)),
    _Rule(
        "prettier",
        (".prettierrc{,.json,.yaml,.yml,.toml,.js,.mjs,.cjs,.ts,.mts,.cts}", r'package.json "prettier"\s*:'),
        _WORKTREES,
        unless="(?!)",
        into=(".prettierignore",),
        also=(".gitignore",),
    ),
    # `npm publish` packs everything that its ignore file does not name, unless `files` says what to pack
    _Rule(
        "npm",
        (r'package.json "version"\s*:',),
        _BOTH,
        unless=r'"private"\s*:\s*true|"files"\s*:',
        into=(".npmignore", ".gitignore"),
    ),
    # the build context is everything that .dockerignore does not name
    _Rule("docker", ("Dockerfile", "Containerfile"), _BOTH, unless="(?!)", into=(".dockerignore",)),
)


def ignore_lines(root: Path) -> tuple[IgnoreLine, ...]:
    """Only lines that are needed and missing, in a fixed order."""
    return tuple(line for rule in _RULES for line in _lines(root, rule))


def _lines(root: Path, rule: _Rule) -> Iterator[IgnoreLine]:
    if rule.package and not re.search(rf'"{rule.package}"\s*:\s*"', _text(root, "package.json") or ""):
        return
    file = next((name for spec in rule.files for name in _names(root, spec)), rule.new)
    if not file:
        return
    text = _text(root, file) or ""
    if re.search(rule.wants, text, re.MULTILINE) and not re.search(rule.unless, text, re.MULTILINE):
        existing = (name for name in rule.into if (root / name).is_file())
        place = next(existing, rule.into[-1]) if rule.into else file
        known = {line for name in (place, *rule.also) for line in _ignored(root, name)}
        for line in rule.lines:
            name = line.strip("/")
            if not rule.into or known.isdisjoint({name, f"**/{name}", f"{name}/**", ".*", "*"}):
                yield IgnoreLine(rule.tool, place, line)


def _names(root: Path, spec: str) -> Iterator[str]:
    """`vite.config.{js,ts}`: each that exists; after a space, the pattern of a section that it must have."""
    name, _, section = spec.partition(" ")
    stem, _, endings = name.partition("{")
    for ending in endings.rstrip("}").split(","):
        text = _text(root, stem + ending)
        if text is not None and re.search(section, text, re.MULTILINE):
            yield stem + ending


def _ignored(root: Path, file: str) -> Iterator[str]:
    return (line.strip().strip("/") for line in (_text(root, file) or "").splitlines())


def _text(root: Path, name: str) -> str | None:
    try:
        return (root / name).read_text()
    except (OSError, UnicodeDecodeError):
        return None
