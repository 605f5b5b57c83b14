"""Recognizes a usage limit in the words of the CLI that ran into it. Panes import this, so it stays small."""

from __future__ import annotations

_LOOKED_AT = 10_000  # characters: a program may print a line of any length


def limit_in(text: str, words: str) -> str | None:
    """The limit that `text` reports, with its time first; None if the regular expression `words` does not
    match.

    Its group `until` is the time at which the limit ends, `after` how long it still lasts.
    """
    if not words:
        return None
    import re  # costs as much as the rest of a hook, so only where there are words

    said = " ".join(text[:_LOOKED_AT].split())
    found = re.search(words, said, re.IGNORECASE)
    if found is None:
        return None
    ends = found.groupdict()
    for preposition, group in (("until", "until"), ("for", "after")):
        if ends.get(group):
            return f"{preposition} {ends[group].strip()}: {said}"
    return said
