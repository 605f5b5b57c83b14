"""The butlers of the farm, as their files describe them."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

from agent_farm.errors import AgentFarmError
from agent_farm.farm.checks.finding import Finding
from agent_farm.farm.farm import Farm
from agent_farm.sessions.butlers import (
    FILE_NAME,
    butler_names,
    load_butler,
    own_butler_name,
    roster_directory,
)


def check_butlers(farm: Farm) -> Iterator[Finding]:
    """What would keep a butler's server from starting."""
    good = []
    for name in dict.fromkeys([own_butler_name(farm.root), *butler_names(farm.root)]):
        try:
            good.append(load_butler(farm.root, name).name)
        except AgentFarmError as error:
            file = roster_directory(farm.root) / name / FILE_NAME
            edit = f"$EDITOR {shlex.quote(str(file.relative_to(farm.root)))}"
            remedy = edit if file.exists() else error.hint
            yield Finding("problem", f"{error.what}: {error.why}" if error.why else error.what, remedy)
    if good:
        yield Finding("ok", f"butlers: {', '.join(good)}")
