"""`config_list`: every setting in force here, and what of the repository's nobody has agreed to yet."""

from __future__ import annotations

from agent_farm.consent import not_agreed
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single

Value = bool | int | str | tuple[str, ...] | None


class ConfigList(Request):
    pass


class Setting(Answer):
    """`source` is `default`, a file or a variable of the environment."""

    value: Value
    source: str


class AllSettings(Answer):
    """`not_agreed` names those of the repository that do not hold before its user has agreed to them."""

    settings: dict[str, Setting]
    not_agreed: tuple[str, ...]


def _list(context: Context, request: ConfigList) -> AllSettings:
    farm = context.farm
    settings = farm.settings
    return AllSettings(
        settings={name: Setting(value, settings.source(name)) for name, value in settings.values.items()},
        not_agreed=tuple(
            name for name in settings.values if not_agreed(farm.root, settings.requests([name]))
        ),
    )


OPERATION = Operation(
    "config_list",
    "List every setting with its value and the file it comes from",
    ConfigList,
    AllSettings,
    single(_list),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
)
