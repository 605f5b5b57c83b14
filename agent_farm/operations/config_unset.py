"""`config_unset`: takes a setting out of its file."""

from __future__ import annotations

from agent_farm.operations.config_set import OfUser, SettingName, place_of
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single
from agent_farm.settings_file import unset_value


class ConfigUnset(Request):
    name: SettingName
    user: OfUser = False


class TakenOut(Answer):
    """`was_set` is false when there was nothing to take out."""

    name: str
    was_set: bool


def _unset(context: Context, request: ConfigUnset) -> TakenOut:
    return TakenOut(request.name, unset_value(place_of(context, user=request.user), request.name))


OPERATION = Operation(
    "config_unset",
    "Take a setting out of its file",
    ConfigUnset,
    TakenOut,
    single(_unset),
    only,
    effect="changes",
    tolerant=True,
    repeats=True,
)
