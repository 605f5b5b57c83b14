"""JSON with comments and trailing commas, as people write it in configuration files."""

from __future__ import annotations

import json
import re

_STRING = r'"(?:\\.|[^"\\])*"'
_COMMENT = re.compile(rf"({_STRING})|//[^\n]*|/\*.*?\*/", re.DOTALL)
_TRAILING = re.compile(rf"({_STRING})|,(?=\s*[}}\]])", re.DOTALL)


def loads(text: str) -> object:
    """ValueError when it is no JSON even so; empty text is an empty object."""
    bare = _TRAILING.sub(_keep_string, _COMMENT.sub(_keep_string, text.removeprefix("\ufeff")))
    return json.loads(bare) if bare.strip() else {}


def _keep_string(match: re.Match[str]) -> str:
    return match.group(1) or ""
