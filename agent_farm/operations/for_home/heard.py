"""Ends a wait for home soon after home was killed."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

_BEAT_SECONDS = 5.0


@contextmanager
def while_heard(beat: Callable[[], None]) -> Iterator[None]:
    """Ends this process, which must change nothing, once nobody reads what it prints.

    ssh does not notice that its `af` was killed until it has something to pass on, so `beat` is called now
    and then to print a line without a meaning.
    """
    over = threading.Event()

    def keep_beating() -> None:
        while not over.wait(_BEAT_SECONDS):
            try:
                beat()
            except OSError:
                os._exit(1)

    thread = threading.Thread(target=keep_beating, daemon=True)
    thread.start()
    try:
        yield
    finally:
        over.set()
        thread.join()
