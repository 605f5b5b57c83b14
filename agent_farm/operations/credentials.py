"""`credentials_…`: keys for headless sessions, encrypted at rest."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import Answer, Context, Nothing, Request
from agent_farm.operations.served import database_of
from agent_farm.sessions.credential_store import CredentialStore

Name = Annotated[str, Meta(description="Name of an environment variable")]


def _store(context: Context) -> CredentialStore:
    return CredentialStore(database_of(context))


class Credential(Struct, frozen=True):
    name: str
    updated_at: Annotated[float, Meta(description="Seconds since 1970")]


class AllCredentials(Answer):
    credentials: tuple[Credential, ...]


@reads("List the stored names, and when each was set")
def credentials_list(context: Context, request: Nothing) -> AllCredentials:
    return AllCredentials(tuple(Credential(*one) for one in _store(context).names().items()))


class CredentialsSet(Request):
    name: Name
    value: Annotated[str, Meta(description="Its value, which is never shown again")]


class SetCredential(Answer):
    set: str


@acts(
    "Store a value",
    tolerant=True,
    repeats=True,
    doors=frozenset({"http"}),  # whatever a model passes on, its provider has read, too
)
def credentials_set(context: Context, request: CredentialsSet) -> SetCredential:
    _store(context).set(request.name, request.value)
    return SetCredential(request.name)


class CredentialsUnset(Request):
    name: Name


class UnsetCredential(Answer):
    unset: str


@acts("Remove a stored value", effect="destroys", tolerant=True)
def credentials_unset(context: Context, request: CredentialsUnset) -> UnsetCredential:
    _store(context).unset(request.name)
    return UnsetCredential(request.name)
