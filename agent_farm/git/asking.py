"""Questions asked side by side: within a bound, or each to its answer or its error."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from contextvars import copy_context
from functools import partial
from itertools import count
from threading import Thread, current_thread, main_thread
from types import FrameType
from typing import Generic, TypeVar

from agent_farm.errors import AgentFarmError

K = TypeVar("K")
V = TypeVar("V")

_A_DAY = 86_400.0


class Asking(Generic[K, V]):
    """They are asked in the order given, from the moment this is made.

    A question that fails, or takes longer than `until` (of the monotonic clock), has no answer. A program
    that not even a kill ends (its disk hangs, for example) does not delay the others.
    """

    def __init__(
        self, questions: Mapping[K, Callable[[], V]], *, until: float, workers: int | None = None
    ) -> None:
        self._waiting = list(questions.items())[::-1]
        self._until = until
        self._answers: dict[K, V] = {}
        count = min(len(self._waiting), workers or max(2, os.cpu_count() or 2))
        # Plain threads: a pool from the standard library would load `logging` on the way of `af status`.
        self._threads = [
            Thread(target=copy_context().run, args=(self._work,), daemon=True) for _ in range(count)
        ]
        for thread in self._threads:
            thread.start()

    def answers(self) -> dict[K, V]:
        """Once all have answered, or the time is over."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        return dict(self._answers)

    def end(self) -> None:
        """No further one is asked; returns when those that have begun are at their end."""
        self._waiting.clear()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while self._waiting and time.monotonic() < self._until:
            try:
                name, question = self._waiting.pop()
                self._answers[name] = question()
            except (IndexError, AgentFarmError, OSError):  # another thread took the last one; or no answer
                continue


def all_at_once(questions: Mapping[K, Callable[[], V]]) -> dict[K, V]:
    """The answer of each; raises the error of one without an answer."""
    answers: dict[K, V] = {}
    for name, answer in side_by_side(questions, workers=len(questions)).items():
        if isinstance(answer, AgentFarmError):
            raise answer
        answers[name] = answer
    return answers


def side_by_side(
    questions: Mapping[K, Callable[[], V]],
    *,
    workers: int | None = None,
    step: Callable[[int, int], None] = lambda done, total: None,
) -> dict[K, V | AgentFarmError]:
    """The answer or error of each; waits for all.

    An interrupt begins no further one, and comes once those that had begun have ended. `step` is told how
    many have been answered.
    """
    done = count(1)

    def answered(question: Callable[[], V]) -> V | AgentFarmError:
        try:
            return question()
        except AgentFarmError as error:
            return error
        except OSError as error:
            return AgentFarmError(str(error))
        finally:
            step(next(done), len(questions))

    step(0, len(questions))
    if len(questions) == 1:
        return {name: answered(question) for name, question in questions.items()}
    asked = {name: partial(answered, question) for name, question in questions.items()}
    asking = Asking(asked, until=time.monotonic() + _A_DAY, workers=workers)
    try:
        return asking.answers()
    except BaseException:
        asking.end()
        raise


def as_asked(
    questions: Mapping[K, Callable[[], V]], *, workers: int | None = None
) -> Iterator[tuple[K, V | AgentFarmError]]:
    """As `side_by_side`, each as soon as it and all before it have answered.

    Even after an interrupt, the results of those that had begun are yielded.
    """
    from queue import SimpleQueue  # with heapq, which a status does without

    ended = SimpleQueue[tuple[K, V | BaseException] | None]()  # None for a Ctrl-C

    def answered(name: K, question: Callable[[], V]) -> None:
        try:
            ended.put((name, question()))
        except BaseException as error:
            ended.put((name, error))

    asked = {name: partial(answered, name, question) for name, question in questions.items()}
    found = dict[K, V | BaseException]()
    with _interrupts_told(partial(ended.put, None)):
        asking = Asking(asked, until=time.monotonic() + _A_DAY, workers=workers)
        try:
            for name in questions:
                while name not in found:
                    found |= _answer(ended.get())
                yield name, _expected(found.pop(name))
            if not ended.empty():
                raise KeyboardInterrupt
        except BaseException as error:
            asking.end()
            if not isinstance(error, GeneratorExit):
                while not ended.empty():
                    with suppress(KeyboardInterrupt):
                        found |= _answer(ended.get())
                for name, value in found.items():
                    yield name, _expected(value)
            raise


@contextmanager
def _interrupts_told(tell: Callable[[], None]) -> Iterator[None]:
    """The first Ctrl-C breaks in nowhere, so that no answer is lost between two steps; a second one does."""

    def note(number: int, frame: FrameType | None) -> None:
        signal.signal(signal.SIGINT, before)
        tell()

    before = signal.getsignal(signal.SIGINT)
    if before is not signal.default_int_handler or current_thread() is not main_thread():
        yield
        return
    signal.signal(signal.SIGINT, note)
    try:
        yield
    finally:
        signal.signal(signal.SIGINT, before)


def _answer(one: tuple[K, V | BaseException] | None) -> dict[K, V | BaseException]:
    if one is None:
        raise KeyboardInterrupt
    return dict([one])


def _expected(value: V | BaseException) -> V | AgentFarmError:
    if isinstance(value, OSError):
        return AgentFarmError(str(value))
    if isinstance(value, BaseException) and not isinstance(value, AgentFarmError):
        raise value
    return value
