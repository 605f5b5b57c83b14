"""`config_…`: list, set and remove settings, and approve what the repository wants."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Annotated

from msgspec import Meta

from agent_farm import consent
from agent_farm.errors import AgentFarmError, ConsentNeeded, UsageError, there_are
from agent_farm.farm.chosen_runtime import include_requests
from agent_farm.farm.farm import Farm
from agent_farm.launch import as_command
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import acts, reads
from agent_farm.operations.operation import Answer, Context, Nothing, Request
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.origin import repository_program
from agent_farm.sessions.butlers import load_butler
from agent_farm.sessions.roster import butler_names
from agent_farm.sessions.schedules import schedule_request
from agent_farm.settings import open_settings
from agent_farm.settings_file import find_key, set_value, unset_value

Value = bool | int | str | tuple[str, ...] | None
SettingName = Annotated[str, Meta(description="Name of the setting, as in spawn.runtime")]
OfUser = Annotated[bool, Meta(description="In your own file, for every repository")]


class Setting(Answer):
    """`source` is `default`, a file, or an environment variable."""

    value: Value
    source: str


class AllSettings(Answer):
    """`not_agreed` lists settings of the repository that have no effect until its user approves them."""

    settings: dict[str, Setting]
    not_agreed: tuple[str, ...]


@reads("List every setting with its value and the file it comes from")
def config_list(context: Context, request: Nothing) -> AllSettings:
    root, settings = context.farm.root, context.farm.settings
    return AllSettings(
        settings={name: Setting(value, settings.source(name)) for name, value in settings.values.items()},
        not_agreed=tuple(
            name for name in settings.values if consent.not_agreed(root, settings.requests([name]))
        ),
    )


class ConfigGet(Request):
    name: SettingName


class OneSetting(Answer):
    name: str
    value: Value
    source: str


@reads("Print the value of one setting", details="It is an error if there is none.")
def config_get(context: Context, request: ConfigGet) -> OneSetting:
    find_key(request.name)
    settings = context.farm.settings
    value = settings.values.get(request.name)
    if value is None or value == ():
        hint = as_command("af", "config", "set", request.name, "VALUE")
        raise AgentFarmError(f"{request.name} is not set", hint=hint)
    return OneSetting(request.name, value, settings.source(request.name))


class ConfigSet(Request):
    name: SettingName
    value: Annotated[
        str, Meta(description="Its value; a list as a,b or as in the file, flags are true or false")
    ]
    user: OfUser = False
    yes: Annotated[bool, Meta(description="Approve that value")] = False


class Stored(Answer):
    """`agreed` is false if the value has no effect until the repository's user approves it."""

    name: str
    value: Value
    agreed: bool


@acts("Set a value in agent-farm.toml, or in your own file", tolerant=True, repeats=True)
def config_set(context: Context, request: ConfigSet) -> Stored:
    root = _place(context, user=request.user)
    if request.name == "spawn.runtime":
        _require_runtime(context, request.value)
    stored = set_value(root, request.name, request.value, agrees=context.naming_agrees or request.yes)
    asks = root and consent.not_agreed(root, open_settings(root).requests([request.name]))
    return Stored(request.name, tuple(stored) if isinstance(stored, list) else stored, agreed=not asks)


def _place(context: Context, *, user: bool) -> Path | None:
    """None for the user's own settings, which can also be changed outside a repository."""
    return None if user else context.farm.root


def _require_runtime(context: Context, name: str) -> None:
    farm = context.farm_if_there
    known = adapter_names(farm.root if farm else None)
    if name not in known:
        raise UsageError(f"No runtime {name}", why=there_are(name, known), hint="af runtimes")


class ConfigUnset(Request):
    name: SettingName
    user: OfUser = False


class TakenOut(Answer):
    """`was_set` is false if there was nothing to remove."""

    name: str
    was_set: bool


@acts("Remove a setting from its file", tolerant=True, repeats=True)
def config_unset(context: Context, request: ConfigUnset) -> TakenOut:
    return TakenOut(request.name, unset_value(_place(context, user=request.user), request.name))


class ConfigAgree(Request):
    yes: Yes = False


class Wish(Answer):
    """`origin` is the setting or file it comes from, `shown` is how a person sees it."""

    origin: str
    content: str
    shown: str


class Agreed(Answer):
    agreed: tuple[Wish, ...]


@acts(
    "Show what this repository wants and you have not approved yet, and ask about it",
    tolerant=True,
    repeats=True,
    details="Commands, arguments, permissions, variables, copies, schedules and scripts of a repository take"
    " effect once you have approved them; after a change you are asked again.",
)
def config_agree(context: Context, request: ConfigAgree) -> Agreed:
    farm = context.farm
    new = consent.not_agreed(farm.root, all_requests(farm))
    try:
        consent.require_consent(farm.root, new, yes=request.yes, ask=context.ask)
    except ConsentNeeded as error:
        error.hint = f"{consent.HINT} --yes"
        raise
    return Agreed(tuple(Wish(one.origin, one.content, one.shown) for one in new))


def all_requests(farm: Farm) -> list[consent.ConsentRequest]:
    """Everything the repository wants, approved or not.

    Files that cannot be read are left out; they are refused when they are used.
    """
    return [*farm.settings.asking(), *include_requests(farm), *_programs(farm), *_of_butlers(farm)]


def _programs(farm: Farm) -> Iterator[consent.ConsentRequest]:
    with suppress(AgentFarmError):
        for name in adapter_names(farm.root):
            with suppress(AgentFarmError):
                if program := repository_program(farm.root, name):
                    yield program


def _of_butlers(farm: Farm) -> Iterator[consent.ConsentRequest]:
    for name in butler_names(farm.root):
        with suppress(AgentFarmError):
            butler = load_butler(farm.root, name)
            yield from butler.requests
            yield from (schedule_request(farm.root, name, entry) for entry in butler.schedules)
