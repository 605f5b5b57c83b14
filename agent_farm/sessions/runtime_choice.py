"""Chooses the runtime of a headless session, with the settings that apply to it in this farm."""

from __future__ import annotations

import shlex
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import cast, get_args

from agent_farm.consent import Ask, Consent, require_consent
from agent_farm.errors import NotFound, ToolMissing, UsageError
from agent_farm.runtimes import ADAPTERS, get_adapter
from agent_farm.runtimes.base import Permissions, RuntimeAdapter, no_runtime, require_adapter, require_model
from agent_farm.runtimes.bounds import Bounds
from agent_farm.runtimes.origin import agree_by_name, runtime_requests
from agent_farm.sessions.butlers import Butler, configured_runtime, transport_problem
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.records import SessionLog
from agent_farm.sessions.session import SessionRequest
from agent_farm.settings import Settings, open_settings

_FROM_NARROW_TO_WIDE: tuple[Permissions, ...] = get_args(Permissions)


@dataclass(frozen=True, slots=True)
class Choice:
    """What a session's runtime is started with besides what is in its record.

    `environ` is the caller's shell's; `conversation_id` and `home` belong to the session that it resumes.
    `agreed`: a machine that runs it need not ask again.
    """

    adapter: RuntimeAdapter
    model: str | None = None
    permissions: Permissions = "edit"
    command: tuple[str, ...] | None = None
    runtime_args: tuple[str, ...] | None = None
    environ: Mapping[str, str] = field(default_factory=dict, repr=False)
    checkout: Path | None = None
    bounds: Bounds | None = None
    conversation_id: str | None = None
    home: str | None = None
    agreed: Consent = False


def choose(
    root: Path,
    butler: Butler,
    credentials: CredentialStore,
    environ: Mapping[str, str],
    request: SessionRequest,
    *,
    yes: Consent = False,
    ask: Ask | None = None,
) -> Choice:
    """The requested runtime, else the butler's, else the farm's, else the first usable one.

    The farm's settings are read anew, because a server outlives them. ConsentNeeded for whatever of the
    repository nobody has approved; `yes` and `ask` come from a person who is present.
    """
    settings = open_settings(root, environ)
    settings.require_good()
    name = request.runtime or butler.runtime or configured_runtime(root, settings)
    adapter = require_adapter(name, root) if name else _first_usable(butler, credentials, environ)
    if problem := transport_problem(adapter, butler.transport):
        raise UsageError(f"{butler.name} serves its sessions over {butler.transport}", why=problem)
    own = settings.runtime(adapter.name)
    requests = [
        *butler.requests,
        *runtime_requests(root, settings, adapter.name, permissions=request.permissions),
        *settings.requests(["env.pass"]),
    ]
    require_consent(root, requests, yes=yes, ask=ask)
    permissions = request.permissions or _usual_permissions(settings, adapter.name)
    own_model = _own_model(settings, butler, adapter.name, named=request.runtime is not None)
    return Choice(
        adapter=adapter,
        model=require_model(request.model or own_model),
        permissions=permissions,
        command=tuple(shlex.split(own.command)) if own.command else None,
        runtime_args=own.args or None,
    )


def usual_permissions(root: Path, butler: Butler, environ: Mapping[str, str]) -> Permissions:
    """The widest that a session of `butler` may get if nobody says otherwise."""
    settings = open_settings(root, environ)
    name = butler.runtime or configured_runtime(root, settings)
    names = [name] if name else ADAPTERS
    return max((_usual_permissions(settings, one) for one in names), key=_FROM_NARROW_TO_WIDE.index)


def most_permissions(log: SessionLog, session_id: str | None) -> Permissions:
    """The permissions that a session may give another one: at most its own. Other callers may give all."""
    with suppress(NotFound):
        if session_id is not None:
            return log.load(session_id).permissions or "all"
    return "all"


def narrower(one: Permissions, other: Permissions) -> Permissions:
    return min(one, other, key=_FROM_NARROW_TO_WIDE.index)


def _usual_permissions(settings: Settings, runtime: str) -> Permissions:
    return cast(Permissions, settings.runtime(runtime).permissions or settings.values["spawn.permissions"])


def _own_model(settings: Settings, butler: Butler, name: str, *, named: bool) -> str | None:
    """A model belongs to the runtime that it is configured with: no other runtime knows it."""
    configured = settings.text("spawn.runtime")
    is_farms = name == configured or (configured is None and butler.runtime is None and not named)
    is_butlers = name == (butler.runtime or configured) or (is_farms and butler.runtime is None)
    return (
        settings.runtime(name).model
        or (butler.model if is_butlers else None)
        or (settings.text("spawn.model") if is_farms else None)
    )


def _first_usable(butler: Butler, credentials: CredentialStore, environ: Mapping[str, str]) -> RuntimeAdapter:
    """A key in the credential store counts like one in the environment."""
    problems = []
    for name in ADAPTERS:
        if name == "demo":  # does no real work, so it must be asked for
            continue
        adapter = get_adapter(name)
        problem = adapter.problem({**environ, **credentials.lookup_all(adapter.cli.every_variable)})
        problem = problem or transport_problem(adapter, butler.transport)
        if problem is None:
            return adapter
        problems.append(f"{name}: {problem}")
    raise no_runtime(problems, hint='af run --runtime demo "…"')


def agree_to_session(
    root: Path,
    butler: Butler,
    credentials: CredentialStore,
    request: SessionRequest,
    *,
    yes: Consent,
    ask: Ask | None,
    naming_agrees: bool,
) -> None:
    """Asks a person for consent before a session is handed to the server, where nobody can be asked.

    With `naming_agrees`, naming a repository's own runtime approves it.
    """
    if request.runtime and naming_agrees:
        agree_by_name(root, request.runtime)
    with suppress(ToolMissing):  # the server has its own environment, and reports this better
        choose(root, butler, credentials, credentials.environ, request, yes=yes, ask=ask)
