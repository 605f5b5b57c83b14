"""`state_…`: values that a butler's sessions keep for later sessions."""

from __future__ import annotations

from typing import Annotated, Any

from msgspec import Meta

from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import EVERYBODY, SESSIONS, Answer, Context, Request
from agent_farm.operations.served import database_of, whose
from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.state_store import StateStore

Key = Annotated[str, Meta(description="Name of the value")]
OfButler = Annotated[str | None, Meta(description="Butler it belongs to; default: the farm's own")]
AtRevision = Annotated[
    int | None,
    Meta(description="Only overwrite this revision, as given by state_get; 0: only create the key"),
]


def _store(context: Context, butler: str | None) -> StateStore:
    """A session can reach its own state even while its butler's file is invalid."""
    name = whose(context, butler) or (context.butlers.own.name if context.butlers else None)
    if name is None or butler is not None:
        name = load_butler(context.farm.root, name).name
    return StateStore(database_of(context), name)


class OneKey(Request):
    key: Key
    butler: OfButler = None


class KeptValue(Answer):
    """`revision` is 0, and `value` null, if nothing is kept. No revision is used twice."""

    key: str
    value: Any
    revision: int


@reads("Read what is kept under a key, and its revision", pool="state", who=EVERYBODY)
def state_get(context: Context, request: OneKey) -> KeptValue:
    value, revision = _store(context, request.butler).read(request.key)
    return KeptValue(request.key, value, revision)


class StateSet(Request):
    key: Key
    value: Annotated[Any, Meta(description="Any JSON value")]
    if_revision: AtRevision = None
    butler: OfButler = None


@acts(
    "Keep a value for later sessions",
    who=SESSIONS,
    tolerant=True,
    pool="state",
    details="With if_revision, only if nobody has changed it since.",
)
def state_set(context: Context, request: StateSet) -> KeptValue:
    store = _store(context, request.butler)
    revision = store.set(request.key, request.value, if_revision=request.if_revision)
    return KeptValue(request.key, request.value, revision)


class StateList(Request):
    prefix: Annotated[str, Meta(description="Only keys that start with it")] = ""
    butler: OfButler = None


class AllKept(Answer):
    state: Annotated[dict[str, Any], Meta(description="Values by their keys")]


@reads("List the keys, with their values", pool="state", who=EVERYBODY)
def state_list(context: Context, request: StateList) -> AllKept:
    return AllKept(_store(context, request.butler).items(request.prefix))


class Forgotten(Answer):
    """`deleted` says whether it was there."""

    key: str
    deleted: bool


@acts("Forget a key", effect="destroys", who=SESSIONS, tolerant=True, repeats=True, pool="state")
def state_delete(context: Context, request: OneKey) -> Forgotten:
    return Forgotten(request.key, _store(context, request.butler).delete(request.key))
