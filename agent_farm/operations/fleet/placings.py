"""Placing builders on machines, several at a time: those that go to one machine meanwhile go together."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from msgspec import Struct

from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.fleet.book import Book
from agent_farm.fleet.calling import call_several
from agent_farm.fleet.together import Together
from agent_farm.operations.fleet.work_elsewhere import push
from agent_farm.operations.operation import Context

AT_ONCE = 32  # as many as can gather for a call while one is under way
_SECONDS = 1800.0  # a checkout of a large tree, on a slow disk
_MOST = 16  # of one call, whose answer comes when the last one is made
_AT_WORK = 8


class _Wanted(Struct, frozen=True):
    book: Book
    refs: Mapping[str, str]
    request: Mapping[str, Any]


_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class Placings:
    """Of one command, or of one look of the server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._together = Together[_Key, _Wanted, dict[str, Any]](self._place_several, _MOST)
        self._room = BoundedSemaphore(_AT_WORK)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Around all that is done for one: its gits here are some of a few at a time. Whoever waits for a
        machine is not at work."""
        with self._room:
            yield

    def place(
        self,
        book: Book,
        host: str,
        verb: str,
        request: Mapping[str, Any],
        *,
        refs: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> dict[str, Any]:
        """The document that the machine answers, once these commits are there (it may have all). Called
        `at_work`."""
        key = (host, verb, tuple(sorted(environment.items())))
        self._room.release()
        try:
            return self._together.ask(key, _Wanted(book, refs, request))
        finally:
            self._room.acquire()

    def _place_several(
        self, key: _Key, wanted: Sequence[_Wanted]
    ) -> Sequence[dict[str, Any] | AgentFarmError]:
        (host, verb, environment), farm = key, self._context.farm
        book = max((one.book for one in wanted), key=lambda book: book.terms)  # which knows all fences
        try:
            if refs := {ref: commit for one in wanted for ref, commit in one.refs.items()}:
                push(farm, book, host, refs)
            return call_several(
                book,
                host,
                verb,
                [one.request for one in wanted],
                environment=dict(environment),
                seconds=_SECONDS,
                tell=self._context.tell,
            )
        except Unreachable:
            raise
        except AgentFarmError:
            if len(wanted) == 1:
                raise
            return [self._alone(key, one) for one in wanted]

    def _alone(self, key: _Key, one: _Wanted) -> dict[str, Any] | AgentFarmError:
        """Of several one may be what git or the machine has refused."""
        try:
            return self._place_several(key, [one])[0]
        except AgentFarmError as error:
            return error
