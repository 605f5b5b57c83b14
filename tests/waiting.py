"""Waiting for a condition, bounded; tests never sleep for a fixed time instead."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")


def wait_until(condition: Callable[[], T], *, timeout: float = 120.0, what: str = "the condition") -> T:
    """The first truthy answer of `condition`; AssertionError with `what` when it never comes."""
    deadline = time.monotonic() + timeout
    while True:
        asked = time.monotonic()
        answer = condition()
        if answer:
            return answer
        if time.monotonic() > deadline:
            raise AssertionError(f"waited {timeout:g} s for {what}; last answer: {answer!r}")
        # a question that takes long takes a processor from what is waited for
        time.sleep(min(0.1, max(0.02, time.monotonic() - asked)))
