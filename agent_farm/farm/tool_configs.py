"""What a repository's own tools are told by their configuration files."""

from __future__ import annotations

import json
from configparser import ConfigParser
from configparser import Error as IniError
from pathlib import Path
from typing import Any

SCRIPTS = ("js", "mjs", "cjs", "ts", "mts", "cts")


def table(document: dict[str, Any], name: str) -> dict[str, Any] | None:
    value = document.get(name)
    return value if isinstance(value, dict) else None


def words(value: object) -> list[str]:
    """A setting that may be written as a list or as one string with spaces."""
    if isinstance(value, str):
        return value.split()
    return [str(item) for item in value] if isinstance(value, list) else []


class ToolConfigs:
    """The configuration files of a repository, read once; what cannot be read counts as absent."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.pyproject = self._toml("pyproject.toml")
        self.package = self._json("package.json")

    def text(self, name: str) -> str | None:
        try:
            return (self.root / name).read_text()
        except (OSError, UnicodeDecodeError):
            return None

    def ini(self, name: str, section: str) -> dict[str, str] | None:
        parser = ConfigParser(interpolation=None)
        try:
            parser.read_string(self.text(name) or "")
        except IniError:
            return None
        return dict(parser[section]) if section in parser else None

    def toml(self, name: str) -> dict[str, Any]:
        return self.pyproject if name == "pyproject.toml" else self._toml(name)

    def tool(self, name: str) -> dict[str, Any] | None:
        """The `[tool.NAME]` table of pyproject.toml."""
        return table(table(self.pyproject, "tool") or {}, name)

    def depends_on(self, name: str) -> bool:
        kinds = ("dependencies", "devDependencies")
        return any(name in (table(self.package, kind) or {}) for kind in kinds)

    def config(self, stem: str, endings: tuple[str, ...] = SCRIPTS) -> str | None:
        """The configuration file there is of a JavaScript tool."""
        names = (f"{stem}.{ending}" for ending in endings)
        return next((name for name in names if (self.root / name).is_file()), None)

    def ignores(self, file: str, pattern: str) -> bool:
        """Whether a gitignore-style file names a top-level directory."""
        lines = {line.strip().strip("/") for line in (self.text(file) or "").splitlines()}
        name = pattern.strip("/")
        return not lines.isdisjoint({name, f"**/{name}", f"{name}/**", ".*", "*"})

    def _toml(self, name: str) -> dict[str, Any]:
        import tomllib

        try:
            return tomllib.loads(self.text(name) or "")
        except tomllib.TOMLDecodeError:
            return {}

    def _json(self, name: str) -> dict[str, Any]:
        try:
            document = json.loads(self.text(name) or "{}")
        except ValueError:
            return {}
        return document if isinstance(document, dict) else {}
