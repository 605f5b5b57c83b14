"""Finds keywords, strings and the like in code, in the language that a file's name suggests."""

from __future__ import annotations

from collections.abc import Sequence

from msgspec import structs
from pygments.lexer import Lexer
from pygments.lexers import get_lexer_for_filename
from pygments.token import Token
from pygments.util import ClassNotFound

from agent_farm.review.diff_as_read import FileRead, HunkRead, LineRead

Tokens = tuple[tuple[int, int, str], ...]

_MOST = 60_000  # characters of a hunk
_KINDS = (
    (Token.Comment, "comment"),
    (Token.Literal.String, "string"),
    (Token.Literal.Number, "number"),
    (Token.Keyword, "keyword"),
    (Token.Operator.Word, "keyword"),
    (Token.Name.Function, "name"),
    (Token.Name.Class, "name"),
    (Token.Name.Tag, "name"),
    (Token.Name.Builtin, "builtin"),
    (Token.Name.Decorator, "builtin"),
    (Token.Name.Attribute, "builtin"),
)


def with_tokens(file: FileRead) -> FileRead:
    hunks = []
    for hunk in file.hunks:
        found = tokens_of_hunk(file, hunk)
        lines = (structs.replace(line, tokens=found.get(at, ())) for at, line in enumerate(hunk.lines))
        hunks.append(structs.replace(hunk, lines=tuple(lines)))
    return structs.replace(file, hunks=tuple(hunks))


def tokens_of_hunk(file: FileRead, hunk: HunkRead) -> dict[int, Tokens]:
    """By line index; the old and the new side are parsed separately."""
    try:
        lexer = get_lexer_for_filename(file.path, stripnl=False, ensurenl=False)
    except ClassNotFound:
        return {}
    found: dict[int, Tokens] = {}
    for sign in "-+":
        own = [(at, line) for at, line in enumerate(hunk.lines) if line.sign in (" ", sign) and not line.gone]
        found |= zip([at for at, _ in own], _tokens(lexer, [line for _, line in own]), strict=False)
    return found


def _tokens(lexer: Lexer, lines: Sequence[LineRead]) -> list[Tokens]:
    code = "\n".join(line.text for line in lines)
    if len(code) > _MOST:
        return []
    found: list[list[tuple[int, int, str]]] = [[]]
    column = 0
    for kind, text in lexer.get_tokens(code):
        name = next((name for known, name in _KINDS if kind in known), None)
        for number, part in enumerate(text.split("\n")):
            if number:
                found.append([])
                column = 0
            if name and part.strip():
                found[-1].append((column, column + len(part), name))
            column += len(part)
    return [tuple(tokens) for tokens in found]
