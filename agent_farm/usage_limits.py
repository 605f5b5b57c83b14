"""A usage limit, in the words of the CLI that ran into it. Panes import it, so it stays small."""

from __future__ import annotations

_LOOKED_AT = 10_000  # letters: a program may print a line of any length


def limit_in(text: str, words: str) -> str | None:
    """What `text` says of a limit, the time before it; None where the regular expression `words` finds none.

    Of its groups, `until` is the time at which the limit ends, `after` how long that still takes.
    """
    if not words:
        return None
    import re  # as much as all of a hook that says nothing of a limit

    said = " ".join(text[:_LOOKED_AT].split())
    found = re.search(words, said, re.IGNORECASE)
    if found is None:
        return None
    ends = found.groupdict()
    for preposition, group in (("until", "until"), ("for", "after")):
        if ends.get(group):
            return f"{preposition} {ends[group].strip()}: {said}"
    return said
