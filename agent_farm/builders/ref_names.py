"""Names of objects, and of branches by the rules of `git check-ref-format`."""

from __future__ import annotations

import re
from typing import Annotated

from msgspec import Meta

# SHA-1, or SHA-256 in a repository of that format.
OBJECT_NAME = r"[0-9a-f]{40}(?:[0-9a-f]{24})?"
ObjectName = Annotated[str, Meta(pattern=rf"\A{OBJECT_NAME}\Z")]

# Control characters, space, and what git gives a meaning in revisions and patterns.
_FORBIDDEN = re.compile(r"[\x00-\x20\x7f~^:?*\[\\]|\.\.|@\{|//")


def is_branch_name(text: str) -> bool:
    if not text or text in ("@", "HEAD") or text.startswith(("-", "/")) or text.endswith(("/", ".")):
        return False
    if any(part.startswith(".") or part.endswith(".lock") for part in text.split("/")):
        return False
    return _FORBIDDEN.search(text) is None
