"""The settings in force: the repository's file over the user's own, and every value with its source.

    a flag  >  the environment  >  agent-farm.toml  >  the user's config.toml  >  the default

A repository's value that widens something holds only after its user agreed to it: until then, reading it
here raises ConsentNeeded.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

from msgspec import Struct

from agent_farm.consent import ConsentRequest, named_files, not_agreed, require_consent
from agent_farm.errors import AgentFarmError
from agent_farm.paths import SETTINGS_NAME, user_settings_file
from agent_farm.settings_document import load_checked
from agent_farm.settings_keys import KEYS, Key, SettingsError, known_key

_TRUE = frozenset({"1", "true", "yes", "on"})


class RuntimeSettings(Struct, frozen=True):
    command: str | None = None
    args: tuple[str, ...] = ()
    model: str | None = None
    permissions: str | None = None
    unlock: tuple[str, ...] = ()


class Settings(Struct, frozen=True):
    """`values` are as written; `beneath` is what would hold without the repository's file.

    With a `root`, reading a value that needs consent requires that consent.
    """

    values: Mapping[str, Any]
    sources: Mapping[str, str]
    runtimes: Mapping[str, RuntimeSettings] = {}
    beneath: Mapping[str, Any] = {}
    root: Path | None = None
    problems: tuple[SettingsError, ...] = ()

    def text(self, name: str) -> str | None:
        value = self._in_force(name)
        return None if value is None else str(value)

    def number(self, name: str) -> int:
        return int(self._in_force(name))

    def flag(self, name: str) -> bool:
        return bool(self._in_force(name))

    def items(self, name: str) -> tuple[str, ...]:
        return tuple(self._in_force(name))

    def agreed(self, name: str) -> Any:
        """The value, or what holds until the repository's is agreed to: for what starts nothing."""
        try:
            withheld = bool(self.root and not_agreed(self.root, self.requests([name])))
        except AgentFarmError:  # if what was agreed to cannot be read, nothing was
            withheld = True
        return self.beneath.get(name) if withheld else self.values[name]

    def source(self, name: str) -> str:
        """Where the value comes from: `default`, the name of the file, or the environment variable."""
        return self.sources.get(name, "default")

    def runtime(self, name: str) -> RuntimeSettings:
        """As written: `runtimes.origin` says what of it needs consent before it is used."""
        return self.runtimes.get(name, RuntimeSettings())

    def requests(self, names: Iterable[str]) -> list[ConsentRequest]:
        """What the repository's values of these keys ask for, agreed to or not."""
        return [request for name in names if (request := self._request(name))]

    def asking(self) -> list[ConsentRequest]:
        """Everything that the repository's file asks for."""
        return self.requests(name for name, source in self.sources.items() if source == SETTINGS_NAME)

    def require_good(self) -> None:
        """For commands that start something: refuse settings that were understood only in part."""
        if self.problems:
            raise self.problems[0]

    def _request(self, name: str) -> ConsentRequest | None:
        key = known_key(name)
        if key is None or not key.asks or self.sources.get(name) != SETTINGS_NAME:
            return None
        value, own = self.values[name], self.beneath.get(name)
        if key.choices and own is None:
            own = self.beneath["spawn.permissions"]
        if not value or value == own or not _widens(key, value, own):
            return None
        text = "\n".join(value) if isinstance(value, tuple) else str(value)
        files = named_files(self.root, text) if self.root and key.name in _RUNNING else ()
        return ConsentRequest(f"{SETTINGS_NAME} {name}", text, files)

    def _in_force(self, name: str) -> Any:
        if self.root and (request := self._request(name)):
            require_consent(self.root, [request], yes=False, ask=None)
        return self.values[name]


# Keys whose value names programs, and files that run with them.
_RUNNING = ("worktree.setup", "merge.check", "check.command", "notify.command", "command", "args")


def _widens(key: Key, value: Any, own: Any) -> bool:
    if key.choices:
        return key.choices.index(value) > key.choices.index(own)
    if key.name == "env.pass":
        return not set(value) <= set(own)
    return True


def load_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings as written; an unknown key or a value of the wrong kind is refused by name."""
    settings = _load(root, os.environ if environ is None else environ, guard=None)
    settings.require_good()
    return settings


def open_settings(root: Path, environ: Mapping[str, str] | None = None) -> Settings:
    """The settings in force: guarded by consent, with whatever was not understood among `problems`."""
    return _load(root, os.environ if environ is None else environ, guard=root)


def _load(root: Path, environ: Mapping[str, str], *, guard: Path | None) -> Settings:
    personal_file = user_settings_file()
    personal = load_checked(personal_file, str(personal_file))
    shared = load_checked(root / SETTINGS_NAME, SETTINGS_NAME)
    values: dict[str, Any] = {key.name: key.default for key in KEYS} | dict(personal.values)
    beneath = dict(values)
    sources = dict.fromkeys(personal.values, str(personal_file)) | dict.fromkeys(shared.values, SETTINGS_NAME)
    values |= shared.values
    for key in KEYS:
        text = environ.get(key.env) if key.env else None
        if text:
            values[key.name] = text.lower() in _TRUE if key.kind is bool else text
            sources[key.name] = str(key.env)
    runtimes = _runtimes(values)
    return Settings(
        values,
        sources,
        runtimes,
        beneath,
        guard,
        (*shared.problems, *personal.problems),
    )


def _runtimes(values: Mapping[str, Any]) -> dict[str, RuntimeSettings]:
    fields: dict[str, dict[str, Any]] = {}
    for name, value in values.items():
        if name.startswith("runtimes."):
            runtime, _, key = name.removeprefix("runtimes.").rpartition(".")
            fields.setdefault(runtime, {})[key] = value
    return {runtime: RuntimeSettings(**given) for runtime, given in fields.items()}
