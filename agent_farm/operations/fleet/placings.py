"""Places several builders at a time; those that go to the same machine share a push and a call."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from threading import BoundedSemaphore
from typing import Any

from msgspec import Struct

from agent_farm.errors import AgentFarmError, Unreachable
from agent_farm.fleet.book import read_book
from agent_farm.fleet.calling import call_several
from agent_farm.fleet.together import Together
from agent_farm.operations.fleet.work_elsewhere import push
from agent_farm.operations.operation import Context

AT_ONCE = 32  # as many as may gather for the next call during one
_SECONDS = 1800.0  # for a checkout of a large tree on a slow disk
_MOST = 16  # builders in one call, which is answered when the last one is made
_AT_WORK = 8


class _Wanted(Struct, frozen=True):
    refs: Mapping[str, str]
    request: Mapping[str, Any]


_Key = tuple[str, str, tuple[tuple[str, str], ...]]


class Placings:
    """Lives for one command, or one look of the server."""

    def __init__(self, context: Context) -> None:
        self._context = context
        self._together = Together[_Key, _Wanted, dict[str, Any]](self._place_several, _MOST)
        self._room = BoundedSemaphore(_AT_WORK)

    @contextmanager
    def at_work(self) -> Iterator[None]:
        """Wraps the work for one builder, and limits how many run git here at a time; waiting for a machine
        is not work."""
        with self._room:
            yield

    def place(
        self,
        host: str,
        verb: str,
        request: Mapping[str, Any],
        *,
        refs: Mapping[str, str],
        environment: Mapping[str, str],
    ) -> dict[str, Any]:
        """The machine's answer, after these commits were sent, as far as it lacks them. Called `at_work`."""
        key = (host, verb, tuple(sorted(environment.items())))
        self._room.release()
        try:
            return self._together.ask(key, _Wanted(refs, request))
        finally:
            self._room.acquire()

    def _place_several(
        self, key: _Key, wanted: Sequence[_Wanted]
    ) -> Sequence[dict[str, Any] | AgentFarmError]:
        (host, verb, environment), farm = key, self._context.farm
        book = read_book(farm)  # as it is by now: it knows all fences
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
        """Placed alone, because one of several may be what git or the machine refused."""
        try:
            return self._place_several(key, [one])[0]
        except AgentFarmError as error:
            return error
