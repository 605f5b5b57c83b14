"""Combines what several threads ask of the same machine into one call."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from threading import Lock
from typing import Generic, TypeVar, cast

from agent_farm.errors import AgentFarmError

K = TypeVar("K")
T = TypeVar("T")
A = TypeVar("A")


class _One(Generic[T, A]):
    def __init__(self, item: T) -> None:
        self.item = item
        self.answer: A | BaseException | None = None
        self.is_answered = False


class Together(Generic[K, T, A]):
    """`act` handles several items, at most `most`, and returns an answer or an error for each, in order.

    For each key, one call runs at a time; items asked for in the meantime are collected for the next one.
    """

    def __init__(self, act: Callable[[K, Sequence[T]], Sequence[A | AgentFarmError]], most: int) -> None:
        self._act, self._most = act, most
        self._lock = Lock()
        self._turns = dict[K, Lock]()
        self._waiting = dict[K, list[_One[T, A]]]()

    def ask(self, key: K, item: T) -> A:
        mine = _One[T, A](item)
        with self._lock:
            turn = self._turns.setdefault(key, Lock())
            self._waiting.setdefault(key, []).append(mine)
        with turn:
            while not mine.is_answered:
                self._answer_next(key)
        if isinstance(mine.answer, BaseException):
            raise mine.answer
        return cast(A, mine.answer)

    def _answer_next(self, key: K) -> None:
        with self._lock:
            waiting = self._waiting[key]
            some, waiting[:] = waiting[: self._most], waiting[self._most :]
        try:
            answers: Sequence[A | BaseException] = self._act(key, [one.item for one in some])
        except BaseException as error:
            answers = [error] * len(some)
        for one, answer in zip(some, answers, strict=True):
            one.answer, one.is_answered = answer, True
