"""A protocol's `builder-prompt.md`: `{{a.b}}`, `{{#if a}} … {{else}} … {{/if}}`, `{{> file}}`.

A value is inserted verbatim and not expanded again: the text of an issue cannot include a file.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping

from msgspec import Struct, field

from agent_farm.errors import UsageError

Values = Mapping[str, object]
_TAG = re.compile(r"\{\{\s*(?:(#if|>)\s+(\S+?)|(else|/if)|(\w+(?:\.\w+)*))\s*\}\}")
_MOST_PARTS = 50
_MOST_CHARACTERS = 1_000_000
_DEEPEST = 8


class Template(Struct):
    """`read` returns the text of an included file by its name in the template, or raises.

    `used` holds the first words of all names in the template, whether or not they have a value.
    """

    name: str
    read: Callable[[str], str]
    used: set[str] = field(default_factory=set)
    _parts: int = 0

    def render(self, text: str, values: Values) -> str:
        """Names without a value are empty. Empty lines that left-out blocks leave in a row become one."""
        rendered = "".join(self._render(text, values, self.name, 0))
        if len(rendered) > _MOST_CHARACTERS:
            raise self._wrong(f"The result has {len(rendered)} characters.")
        return re.sub(r"\n{3,}", "\n\n", rendered).strip()

    def _render(self, text: str, values: Values, file: str, depth: int) -> Iterator[str]:
        shown = [True]  # one for each open block, and one for the text itself
        end = 0
        for tag in _TAG.finditer(text):
            if shown[-1]:
                yield text[end : tag.start()]
            end = tag.end()
            opened, what, word, name = tag.groups()
            if opened == "#if":
                shown.append(shown[-1] and bool(self._value(what, values)))
            elif word == "else":
                self._require_open(shown, "else", file)
                shown[-1] = shown[-2] and not shown[-1]
            elif word == "/if":
                self._require_open(shown, "/if", file)
                shown.pop()
            elif opened == ">" and shown[-1]:
                yield from self._include(what, values, depth)
            elif name:
                value = self._value(name, values)
                if shown[-1] and value is not None:
                    yield str(value)
        if len(shown) > 1:
            raise self._wrong(f"An {{{{#if}}}} in {file} is never closed.")
        yield text[end:]

    def _include(self, what: str, values: Values, depth: int) -> Iterator[str]:
        self._parts += 1
        if depth >= _DEEPEST or self._parts > _MOST_PARTS:
            raise self._wrong(f"Its includes never end; the last one is {what}.")
        yield from self._render(self.read(what), values, what, depth + 1)

    def _value(self, name: str, values: Values) -> object:
        first, *rest = name.split(".")
        self.used.add(first)
        value = values.get(first)
        for part in rest:
            value = value.get(part) if isinstance(value, Mapping) else None
        return value

    def _require_open(self, shown: list[bool], word: str, file: str) -> None:
        if len(shown) == 1:
            raise self._wrong(f"There is an {{{{{word}}}}} in {file} without an {{{{#if}}}}.")

    def _wrong(self, why: str) -> UsageError:
        return UsageError(f"{self.name} cannot be rendered", why=why)
