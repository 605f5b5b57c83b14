"""From an agent's template to an argv and an environment: each placeholder is filled once."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass

from agent_farm.errors import UsageError


@dataclass(frozen=True, slots=True)
class Placeholders:
    """`values` are asked for when they occur; a word with one of `lists` in it becomes one word per item."""

    values: Mapping[str, Callable[[], str]]
    lists: Mapping[str, tuple[str, ...]]

    def argv(self, words: Iterable[str]) -> tuple[str, ...]:
        return tuple(filled for word in words for filled in self._words(word))

    def text(self, word: str) -> str:
        """For where there is room for one value: a list is joined by commas."""
        return self._fill(word, {name: ",".join(items) for name, items in self.lists.items()})

    def _words(self, word: str) -> Iterable[str]:
        listed = [name for name in self.lists if f"{{{name}}}" in word]
        if not listed:
            return [self._fill(word, {})]
        if len(listed) > 1:
            raise UsageError(f"The word {word!r} of the command names two lists", why=", ".join(listed))
        return [self._fill(word, {listed[0]: item}) for item in self.lists[listed[0]]]

    def _fill(self, word: str, items: Mapping[str, str]) -> str:
        """Braces that are no placeholder stay, and what is filled in is not looked at again."""
        known = "|".join(map(re.escape, {**self.values, **items}))

        def value(match: re.Match[str]) -> str:
            name = match.group(1)
            return items[name] if name in items else self.values[name]()

        return re.sub(rf"\{{({known})\}}", value, word)
