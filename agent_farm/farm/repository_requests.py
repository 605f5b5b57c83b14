"""All that a repository wants and its user decides about, in one list."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress

from agent_farm.consent import Request
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.start_consent import include_requests
from agent_farm.runtimes import adapter_names
from agent_farm.runtimes.origin import repository_program


def all_requests(farm: Farm) -> list[Request]:
    """Whether agreed to or not; what cannot be read wants nothing, and is refused where it is used."""
    return [*farm.settings.asking(), *include_requests(farm), *_programs(farm), *_of_butlers(farm)]


def _programs(farm: Farm) -> Iterator[Request]:
    with suppress(AgentFarmError):
        for name in adapter_names(farm.root):
            with suppress(AgentFarmError):
                if program := repository_program(farm.root, name):
                    yield program


def _of_butlers(farm: Farm) -> Iterator[Request]:
    from agent_farm.sessions.agreement import schedule_request
    from agent_farm.sessions.butlers import butler_names, load_butler

    for name in butler_names(farm.root):
        try:
            butler = load_butler(farm.root, name)
        except AgentFarmError:
            continue
        yield from butler.requests
        yield from (schedule_request(farm.root, name, entry) for entry in butler.schedules)
