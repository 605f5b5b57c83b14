"""Parts of json, signal and contextlib, for programs that start with every builder and every hook.

Those three import re, enum and collections, which takes as long as Python's own start. The C modules below
them do the same; where those are missing, the usual modules are loaded.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    import signal
    from types import TracebackType
    from typing import Any

    encode_basestring_ascii: Any
    make_encoder: Any
    make_scanner: Any
else:
    try:
        import _signal as signal
    except ImportError:
        import signal
    try:
        from _json import encode_basestring_ascii, make_encoder, make_scanner
    except ImportError:
        make_scanner = None

__all__ = ["dumps", "loads", "signal", "suppress"]

_BLANKS = " \t\n\r"


class suppress:  # as in contextlib
    def __init__(self, *kinds: type[BaseException]) -> None:
        self._kinds = kinds

    def __enter__(self) -> None:
        pass

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> bool:
        return kind is not None and issubclass(kind, self._kinds)


class _Reading:
    """What json's decoder passes to its scanner."""

    strict = True
    object_hook = object_pairs_hook = None
    parse_float = float
    parse_int = int
    memo: dict[str, str] = {}  # noqa: RUF012

    @staticmethod
    def parse_constant(name: str) -> float:
        return float(name.replace("Infinity", "inf"))


def loads(content: bytes | str) -> Any:
    """ValueError for invalid JSON, with json's message."""
    text = content if isinstance(content, str) else content.decode("utf-8", "surrogatepass")
    if make_scanner is not None:
        begin = len(text) - len(text.lstrip(_BLANKS))
        # a SystemError, since the scanner finds no json whose error it could raise
        with suppress(StopIteration, ValueError, SystemError):
            found, end = make_scanner(_Reading)(text, begin)
            if not text[end:].strip(_BLANKS):
                return found
    import json

    return json.loads(text)


def dumps(value: object, separators: tuple[str, str] = (", ", ": ")) -> str:
    if make_scanner is None:
        import json

        return json.dumps(value, separators=separators)
    between, after = separators
    encode = make_encoder({}, _refuse, encode_basestring_ascii, None, after, between, False, False, True)
    return "".join(encode(value, 0))


def _refuse(value: object) -> object:
    raise TypeError(f"{type(value).__name__} is not JSON")
