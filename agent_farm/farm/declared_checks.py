"""The checks that a repository declares: commands that are green, or red, on a tree."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from msgspec import Struct

from agent_farm.consent import Ask, Consent, require_consent
from agent_farm.farm.farm import Farm

_ALONE = "check.command"
_MERGE = "merge.check"


class Check(Struct, frozen=True):
    """`setting` is the key of its command, `seconds` its time limit."""

    name: str
    command: str
    seconds: int
    setting: str


def declared_checks(farm: Farm) -> tuple[Check, ...]:
    """What work must pass to be proven and to land: [check] and each [check.NAME], else merge.check.

    Returned as written: running them requires consent, for which the caller asks first (`agree_to_checks`).
    """
    values = farm.settings.values
    found = [("check", _ALONE), *((name, f"check.{name}.command") for name in _named(values))]
    declared = tuple(_check(farm, name, setting) for name, setting in found if values.get(setting))
    return declared or _of_merge(farm)


def checks_of_merge(farm: Farm) -> tuple[Check, ...]:
    """What `af merge` runs: merge.check if it is set, else everything declared."""
    return _of_merge(farm) or declared_checks(farm)


def agree_to_checks(farm: Farm, checks: Iterable[Check], *, yes: Consent, ask: Ask | None) -> None:
    """Ask for consent to the settings by which the checks run."""
    wanted = farm.settings.requests([*(check.setting for check in checks), "env.pass"])
    require_consent(farm.root, wanted, yes=yes, ask=ask)


def _of_merge(farm: Farm) -> tuple[Check, ...]:
    return (_check(farm, "merge", _MERGE),) if farm.settings.values[_MERGE] else ()


def _check(farm: Farm, name: str, setting: str) -> Check:
    return Check(name, str(farm.settings.values[setting]), farm.settings.number("check.seconds"), setting)


def _named(values: Mapping[str, Any]) -> list[str]:
    inner = (name.removeprefix("check.") for name in values if name.startswith("check."))
    return [name.removesuffix(".command") for name in inner if name.endswith(".command")]
