"""Asks questions on several threads: until a deadline (`Asking`), or until each has an answer or an error."""

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
    """Starts to ask at once, in the order given.

    A question that fails, or has no answer by `until` (on the monotonic clock), is left out of the answers.
    A program that not even a kill ends (because its disk hangs, say) does not delay the others.
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
        """The answers so far, as soon as all have answered or the time is over."""
        for thread in self._threads:
            thread.join(max(0.0, self._until - time.monotonic()))
        return dict(self._answers)

    def end(self) -> None:
        """Start no further question, and wait for those that were started."""
        self._waiting.clear()
        for thread in self._threads:
            thread.join()

    def _work(self) -> None:
        while self._waiting and time.monotonic() < self._until:
            try:
                name, question = self._waiting.pop()
                self._answers[name] = question()
            except (IndexError, AgentFarmError, OSError):  # none left, or no answer
                continue


def all_at_once(questions: Mapping[K, Callable[[], V]]) -> dict[K, V]:
    """All answers; if one question failed, its error is raised."""
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
    """Each question's answer or error; waits for all of them.

    After Ctrl-C no further question is started; KeyboardInterrupt is raised once those under way have
    ended. `step` is called with how many have been answered, and how many there are.
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
    """Like `side_by_side`, but yields each answer as soon as it and all before it are there.

    After Ctrl-C, the answers of questions already started are still yielded.
    """
    from queue import SimpleQueue  # loads heapq, which a status does without

    ended = SimpleQueue[tuple[K, V | BaseException] | None]()  # None stands for a Ctrl-C

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
    """Calls `tell` on the first Ctrl-C instead of raising, so that no answer is lost; a second one raises."""

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
