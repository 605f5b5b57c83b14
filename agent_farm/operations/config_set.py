"""`config_set`: stores a setting, and refuses what `af` would not understand."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm.consent import not_agreed
from agent_farm.errors import AgentFarmError, UsageError, nearest
from agent_farm.operations.builders import Yes
from agent_farm.operations.config_list import Value
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.runtimes import adapter_names
from agent_farm.settings import open_settings
from agent_farm.settings_file import set_value

SettingName = Annotated[str, Meta(description="Name of the setting, as in spawn.runtime")]
OfUser = Annotated[bool, Meta(description="In your own file, for every repository")]


class ConfigSet(Request):
    name: SettingName
    value: Annotated[str, Meta(description="Its value; lists are comma-separated, flags are true or false")]
    user: OfUser = False
    yes: Yes = False


class Stored(Answer):
    """`agreed` is false where the value does not hold before the repository's user has agreed to it."""

    name: str
    value: Value
    agreed: bool


def _set(context: Context, request: ConfigSet) -> Stored:
    root = place_of(context, user=request.user)
    if request.name == "spawn.runtime":
        _require_runtime(context, request.value)
    stored = set_value(root, request.name, request.value, agrees=context.naming_agrees or request.yes)
    asks = root and not_agreed(root, open_settings(root).requests([request.name]))
    return Stored(request.name, tuple(stored) if isinstance(stored, list) else stored, agreed=not asks)


def place_of(context: Context, *, user: bool) -> Path | None:
    """A person's own settings are changed outside of a repository, too."""
    return None if user else context.farm.root


def _require_runtime(context: Context, name: str) -> None:
    known = adapter_names(_root_if_there(context))
    if name in known:
        return
    close = nearest(name, known)
    raise UsageError(
        f"No runtime {name}",
        why=f"Did you mean {close}? " * bool(close) + f"There are: {', '.join(known)}",
        hint="af runtimes",
    )


def _root_if_there(context: Context) -> Path | None:
    try:
        return context.farm.root
    except AgentFarmError:
        return None


OPERATION = Operation(
    "config_set",
    "Store a setting, in agent-farm.toml unless it is to be your own",
    ConfigSet,
    Stored,
    single(_set),
    only,
    effect="changes",
    tolerant=True,
    repeats=True,
)
