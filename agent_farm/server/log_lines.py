"""butler.log: every entry is one line, whoever wrote the text in it."""

from __future__ import annotations

import logging
import re
from typing import Any

_CONTROL = re.compile("[\x00-\x1f\x7f-\x9f\u2028\u2029\u202a-\u202e\u2066-\u2069]")


class OneLine(logging.Formatter):
    """Escapes what would break a line, move the cursor or reverse text; indents tracebacks."""

    def format(self, record: logging.LogRecord) -> str:
        plain = logging.makeLogRecord(record.__dict__)
        plain.msg, plain.args = _visible(record.getMessage()), ()
        return super().format(plain)

    def formatException(self, ei: Any) -> str:
        return "\n".join(f"    {_visible(line)}" for line in super().formatException(ei).splitlines())


def start_log() -> None:
    """Logs to standard error, which is the log file."""
    handler = logging.StreamHandler()
    handler.setFormatter(
        OneLine("%(asctime)s %(levelname)s %(name)s: %(message)s", datefmt="%Y-%m-%d %H:%M:%S")
    )
    logging.basicConfig(level=logging.INFO, handlers=[handler])
    # their messages about requests come from callers that are not authorised yet
    logging.getLogger("uvicorn").setLevel(logging.ERROR)
    logging.getLogger("mcp").setLevel(logging.WARNING)


def _visible(text: str) -> str:
    return _CONTROL.sub(lambda found: found[0].encode("unicode_escape").decode(), text)
