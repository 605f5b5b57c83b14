"""Prompts and roles as one argument of a command line."""

from __future__ import annotations

from pathlib import Path

from agent_farm.runtimes.base import InteractiveOrder
from agent_farm.runtimes.plain_text import OwnWords, as_text

# Linux refuses a single argument of 128 KiB (MAX_ARG_STRLEN, the closing NUL included)
ARGUMENT_LIMIT = 128 * 1024 - 1


def fits_argument(text: str, *, prefix: str = "") -> bool:
    return len((prefix + text).encode()) <= ARGUMENT_LIMIT


def argument_for(order: InteractiveOrder, words: OwnWords, *, prefix: str = "") -> str:
    """The prompt, as the text that it is, or, where no argument can hold it, the order to read its file."""
    given = order.prompt or ""
    prompt = as_text(given, words)
    if fits_argument(prompt, prefix=prefix) or order.prompt_file is None:
        return prompt
    return (
        f"Your task is the whole content of the file {order.prompt_file} ({len(given.encode())} bytes; "
        "it is too long for a command line). Read all of it before you start, then do what it says."
    )


def order_to_read_role(role: str, file: Path) -> str:
    """What stands for a role that no argument can hold."""
    return (
        f"Your role and rules are the whole content of the file {file} ({len(role.encode())} bytes; they are "
        "too long for a command line). Read all of it before anything else, and keep to it throughout."
    )
