"""Sends verbs that only the farm's server can carry out to that server."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

import msgspec

from agent_farm.errors import UsageError
from agent_farm.operations.operation import Answer, Context, Request

if TYPE_CHECKING:
    from agent_farm.sessions.database import Database
    from agent_farm.sessions.running_butlers import RunningButlers

R = TypeVar("R", bound=Request)
A = TypeVar("A", bound=Answer)


def ask(context: Context, verb: str, request: Request, answer: type[A]) -> A:
    from agent_farm.server.client import ask_server

    document = ask_server(context.farm.root, verb, request, context.tell, context.environ)
    del document["version"]
    return msgspec.convert(document, answer)


def running(context: Context) -> RunningButlers:
    assert context.butlers is not None, "a served verb was called outside of the server"
    return context.butlers


def database_of(context: Context) -> Database:
    if context.butlers is not None:
        return context.butlers.database
    from agent_farm.sessions.stores import open_database

    return open_database(context.farm.root)


def whose(context: Context, butler: str | None) -> str | None:
    """The butler that is meant, None for the farm's own; a session can only mean its own."""
    if context.caller == "architect":
        return butler
    if butler not in (None, context.butler):
        raise UsageError(
            "Only the architect can choose a butler", why="Sessions and builders have their own."
        )
    return context.butler
