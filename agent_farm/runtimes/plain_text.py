"""What a CLI's input line takes as its own words, and how a text arrives there as the text that it is."""

from __future__ import annotations

import re
from dataclasses import dataclass

# A model reads past this line, and no input line takes it for anything.
BEFORE = "Message:\n"
# What CLIs trim before they look; U+FEFF is a blank to JavaScript.
_EDGES = re.compile(r"^[\s\ufeff]+|[\s\ufeff]+$")


@dataclass(frozen=True, slots=True)
class OwnWords:
    """Regular expressions; white space around the text does not count, an empty one matches nothing.

    `begins` is how a text begins that the input line would obey, `whole` all of one; under `ends` Enter
    does something else than submit what is there.
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
    """Untouched unless it would be obeyed; a blank, which is trimmed, closes what opens at the end."""
    before = BEFORE if words.would_obey(text) else ""
    return before + text + (" " if words.would_change_end(text) else "")


# The five AI CLIs have learned the same words. `!` is a shell command, past every permission; a name after a
# slash a command of their own, while a path, which has a second slash, is text; the end of a text opens a
# list of names from which Enter would take one, and after a backslash Enter is a line break.
INPUT_LINE = OwnWords(
    begins=r"!|/(?!\w[^\s/]*/)",
    whole=r"exit|quit|help|:q!?|:wq!?",
    ends=r"[@$/#]\S*$|\\$",
)
