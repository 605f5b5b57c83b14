"""A Markdown check list: its items, which items wait for which others, and marking an item as done.

The `tasks.md` of spec-kit, Kiro and OpenSpec is one; so is a list that somebody wrote by hand. Kiro also
marks items that have been begun or queued: `[-]`, `[~]`.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.errors import UsageError

MOST_ITEMS = 1000
_ITEM = re.compile(r"(\s*)[-*+] \[([ xX~-])\]\*?\s+(.*)")
_BOX = re.compile(r"(\s*[-*+] )\[[ ~-]\]")
_FENCE = re.compile(r"\s*(```|~~~)")
# spec-kit: `T012 [P] [US1] …`; Kiro and OpenSpec: `2.1 …`
_KEY = re.compile(r"(?:\*\*)?((?:T\d{1,6}|\d{1,4}(?:\.\d{1,4}){0,5})[a-z]?)[.:)]?(?:\*\*)?\s+")
_NO_KEY = re.compile(r"(?!)")
_TAGS = re.compile(r"(?:\[(?:P|US\d+)\]\s*)+")


class Item(Struct, frozen=True):
    """`key` names it in its list, `text` is all of its text, `after` are the keys of the items it waits for.

    Consecutive `parallel` items of a `section` do not wait for one another. The item is on the lines `begin`
    to `end`.
    """

    key: str
    text: str
    is_done: bool
    parallel: bool = False
    section: int = 0
    begin: int = 0
    end: int = 0
    after: tuple[str, ...] = ()

    @property
    def title(self) -> str:
        return self.text.partition("\n")[0]


def is_check_list(text: str) -> bool:
    return any(_ITEM.match(line) for line in text.splitlines())


def read_items(text: str) -> list[Item]:
    """The items in order, each under its own key; other text is not an item.

    Whatever is indented below an item belongs to it, done or not, unless it has a number of its own: 2.1
    below 2.
    """
    found = list(_items(text.splitlines(), _KEY))
    if len(found) > MOST_ITEMS:
        raise UsageError(f"The list has {len(found)} items", why=f"The limit is {MOST_ITEMS}.")
    keyed = [item for item in found if item.key]
    if 2 * len(keyed) <= len(found):
        return numbered_items(text)
    if all(item.key.startswith("T") for item in keyed):
        found = keyed  # spec-kit numbers every task: other boxes are checks at the end of a phase
    return list(_distinct(found))


def numbered_items(text: str) -> list[Item]:
    """The items with their position as key and everything that is written as text."""
    items = _items(text.splitlines(), _NO_KEY)
    return [replace(item, key=str(number)) for number, item in enumerate(items, 1)]


def _distinct(found: Sequence[Item]) -> Iterator[Item]:
    """A second 2.5 becomes 2.5-2; an item without a number gets its position."""
    seen = Counter[str]()
    for place, item in enumerate(found, 1):
        key = item.key or f"item-{place}"
        seen[key] += 1
        yield replace(item, key=key if seen[key] == 1 else f"{key}-{seen[key]}")


def open_items(text: str) -> list[Item]:
    """Open items, each with those it waits for; an item that heads others (2. of 2.1) is left out."""
    items = read_items(text)
    left = [item for n, item in enumerate(items) if not item.is_done and not _below(items, n)]
    before: list[Item] = []
    group: list[Item] = []
    found = []
    for item in left:
        beside = group and item.parallel and group[-1].parallel and item.section == group[-1].section
        if not beside:
            before, group = group, []
        group.append(item)
        found.append(replace(item, after=tuple(one.key for one in before)))
    return found


def marked(text: str, key: str, title: str) -> str | None:
    """The list with this item done; None if no such item is open. Headings of done items are done."""
    items = read_items(text)
    meant = [n for n, item in enumerate(items) if (item.key, item.title, item.is_done) == (key, title, False)]
    if len(meant) != 1:
        return None
    lines = text.splitlines(keepends=True)
    _mark(lines, items[meant[0]])
    done = {n for n, item in enumerate(items) if item.is_done} | set(meant)
    for n in reversed(range(len(items))):
        below = _below(items, n)
        if below and n not in done and done.issuperset(below):
            _mark(lines, items[n])
            done.add(n)
    return "".join(lines)


def written_source(place: str, key: str, title: str) -> str:
    """How a record writes down the item that its builder was spawned from, and the place of the list."""
    escaped = place.replace("%", "%25").replace("#", "%23")
    return f"{escaped}#{key}#{title}"


def read_source(text: str) -> tuple[str, str, str]:
    """The place, the key and the title that `written_source` wrote down."""
    place, _, rest = text.partition("#")
    key, _, title = rest.partition("#")
    return place.replace("%23", "#").replace("%25", "%"), key, title


def _mark(lines: list[str], item: Item) -> None:
    fenced = False
    for number in range(item.begin, item.end):
        fenced ^= _FENCE.match(lines[number]) is not None
        if not fenced:
            lines[number] = _BOX.sub(r"\1[x]", lines[number], count=1)


def _below(items: Sequence[Item], n: int) -> range:
    """The indexes of the items that item `n` heads: 2.1 and 2.2 after 2."""
    begin = f"{items[n].key.partition('-')[0]}."
    end = n + 1
    while end < len(items) and items[end].key.startswith(begin):
        end += 1
    return range(n + 1, end)


def _items(lines: Sequence[str], keys: re.Pattern[str]) -> Iterator[Item]:
    section, number, fence = 0, 0, ""
    while number < len(lines):
        line = lines[number]
        mark = _FENCE.match(line)
        if mark:
            fence = "" if fence == mark[1] else fence or mark[1]
        section += line.startswith("#") and not fence
        item = None if fence else _ITEM.match(line)
        if item is None:
            number += 1
            continue
        key = keys.match(item[3])
        end = _end(lines, number, len(item[1]))
        if key:
            end = _first_of_its_own(lines, range(number + 1, end), f"{key[1]}.") or end
        yield _item(item, key, lines[number + 1 : end], section, number, end)
        number = end


def _end(lines: Sequence[str], begin: int, depth: int) -> int:
    """Where the more deeply indented lines end; empty lines at the end do not count."""
    end = begin + 1
    for number in range(begin + 1, len(lines)):
        line = lines[number]
        if line.strip():
            if len(line) - len(line.lstrip()) <= depth:
                break
            end = number + 1
    return end


def _first_of_its_own(lines: Sequence[str], below: range, begin: str) -> int | None:
    """The line of an item whose number continues that of the item it is indented under."""
    fenced = False
    for number in below:
        fenced ^= _FENCE.match(lines[number]) is not None
        item = None if fenced else _ITEM.match(lines[number])
        key = item and _KEY.match(item[3])
        if key and key[1].startswith(begin):
            return number
    return None


def _item(
    match: re.Match[str],
    key: re.Match[str] | None,
    below: Sequence[str],
    section: int,
    begin: int,
    end: int,
) -> Item:
    depth, first = len(match[1]), match[3]
    rest = first[key.end() :] if key else first
    tags = _TAGS.match(rest) if key else None
    title = rest[tags.end() :] if tags else rest
    own = [line[depth + 2 :] if line[: depth + 2].isspace() else line.strip() for line in below]
    return Item(
        key=key[1] if key else "",
        text="\n".join([title, *own]).strip(),
        is_done=match[2] in "xX",
        parallel=bool(tags and "[P]" in tags[0]),
        section=section,
        begin=begin,
        end=end,
    )
