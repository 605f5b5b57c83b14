"""butler.log: nobody writes a line of it but the server."""

from __future__ import annotations

import logging

from agent_farm.server.log_lines import OneLine


def entry(message: str, *args: object, exc_info: object = None) -> str:
    record = logging.LogRecord("farm", logging.WARNING, "x.py", 1, message, args, exc_info)  # type: ignore[arg-type]
    return OneLine("%(levelname)s %(message)s").format(record)


def test_an_entry_is_one_line_without_control_characters() -> None:
    assert entry("Refused %s", "a\n2026 INFO forged\r\x1b[31m\x9b\u202e") == (
        r"WARNING Refused a\n2026 INFO forged\r\x1b[31m\x9b\u202e"
    )


def test_a_traceback_is_set_in() -> None:
    try:
        raise ValueError("first\n2026-01-01 INFO forged")
    except ValueError as error:
        lines = entry("failed", exc_info=(ValueError, error, error.__traceback__)).splitlines()
    assert lines[0] == "WARNING failed"
    assert all(line.startswith("    ") for line in lines[1:])
