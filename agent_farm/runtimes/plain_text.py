"""Text for a CLI: what its input line would take as a command, and what fits into one argument."""

from __future__ import annotations

import re
from pathlib import Path

from msgspec import Struct

# A model reads past this line, and no input line gives it a meaning.
BEFORE = "Message:\n"
# What CLIs trim before they look at the text; U+FEFF is white space to JavaScript.
_EDGES = re.compile(r"^[\s\ufeff]+|[\s\ufeff]+$")


class OwnWords(Struct, frozen=True):
    """Regular expressions; white space around the text is ignored, and an empty expression matches nothing.

    `begins` matches the beginning of a text that the input line would obey, `whole` a whole text; if `ends`
    matches, Enter does something else than submit.
    """

    begins: str = ""
    whole: str = ""
    ends: str = ""

    def would_obey(self, text: str) -> bool:
        bare = _EDGES.sub("", text)
        begins = self.begins and re.match(self.begins, bare)
        return bool(begins or (self.whole and re.fullmatch(self.whole, bare)))

    def would_change_end(self, text: str) -> bool:
        return bool(self.ends and re.search(self.ends, text))


def as_text(text: str, words: OwnWords) -> str:
    """Unchanged unless it would be obeyed; a blank at the end, which is trimmed, closes a list there."""
    before = BEFORE if words.would_obey(text) else ""
    return before + text + (" " if words.would_change_end(text) else "")


# The five AI CLIs understand the same words. `!` runs a shell command, past every permission; a slash and a
# name is a command, while a path, which has a second slash, is text; some characters near the end open a list
# of names, in which Enter would choose one; and after a backslash, Enter is a line break.
INPUT_LINE = OwnWords(
    begins=r"!|/(?!\w[^\s/]*/)",
    whole=r"exit|quit|help|:q!?|:wq!?",
    ends=r"[@$/#]\S*$|\\$",
)

# Linux refuses a single argument of 128 KiB (MAX_ARG_STRLEN, which includes the closing NUL)
ARGUMENT_LIMIT = 128 * 1024 - 1


def fits_argument(text: str, *, prefix: str = "") -> bool:
    return len((prefix + text).encode()) <= ARGUMENT_LIMIT


def argument_for(prompt: str, file: Path | None, words: OwnWords, *, prefix: str = "") -> str:
    """The prompt as plain text or, if it is too long for an argument, an order to read its file."""
    text = as_text(prompt, words)
    if fits_argument(text, prefix=prefix) or file is None:
        return text
    return (
        f"Your task is the whole content of the file {file} ({len(prompt.encode())} bytes; "
        "it is too long for a command line). Read all of it before you start, then do what it says."
    )


def order_to_read_role(role: str, file: Path) -> str:
    """Stands for a role that is too long for an argument."""
    return (
        f"Your role and rules are the whole content of the file {file} ({len(role.encode())} bytes; they are "
        "too long for a command line). Read all of it before anything else, and keep to it throughout."
    )
