"""How an error names the fields of a request: as --field here, and at each door in that door's words."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection

from agent_farm.errors import AgentFarmError, UsageError

_FIELD = r"(?<![\w-])--([a-z]+(?:-[a-z]+)*)(?![\w-])"  # not compiled at start: only errors need it


def in_words(error: AgentFarmError, fields: Collection[str], word_of: Callable[[str], str]) -> AgentFarmError:
    """The same error, in which `word_of` has named `fields`. Commands of af stay, and so does the evidence of
    anything but a wrong request: it quotes what others wrote."""

    def worded(text: str) -> str:
        return text if re.search(r"\baf ", text) else re.sub(_FIELD, word, text)

    def word(found: re.Match[str]) -> str:
        name = found[1].replace("-", "_")
        return word_of(name) if name in fields else found[0]

    error.what, error.why = worded(error.what), error.why and worded(error.why)
    if isinstance(error, UsageError):
        error.evidence = tuple(worded(one) for one in error.evidence)
    return error
