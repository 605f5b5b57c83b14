"""`config_get`: the value of one setting."""

from __future__ import annotations

from agent_farm.errors import AgentFarmError
from agent_farm.launch import as_command
from agent_farm.operations.config_list import Value
from agent_farm.operations.config_set import SettingName
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.settings_file import find_key


class ConfigGet(Request):
    name: SettingName


class OneSetting(Answer):
    name: str
    value: Value
    source: str


def _get(context: Context, request: ConfigGet) -> OneSetting:
    find_key(request.name)
    settings = context.farm.settings
    value = settings.values.get(request.name)
    if value is None or value == ():
        hint = as_command("af", "config", "set", request.name, "VALUE")
        raise AgentFarmError(f"{request.name} is not set", hint=hint)
    return OneSetting(request.name, value, settings.source(request.name))


OPERATION = Operation(
    "config_get",
    "Print the value of one setting",
    ConfigGet,
    OneSetting,
    single(_get),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
    details="When it has none that is an error.",
)
