"""Where builders' work counts as landed: on branches, and through merged pull requests."""

from __future__ import annotations

from pathlib import Path

from agent_farm.builders.pull_request import PullRequest
from agent_farm.documents import load_if_whole
from agent_farm.farm.farm import Farm
from agent_farm.git.landing_targets import landing_targets
from agent_farm.paths import RunPaths


def landing_places(farm: Farm, base: str | None) -> list[str]:
    """The base, the main checkout's HEAD and all remote branches, except those of pull requests."""
    files = farm.paths.runs.glob(str(RunPaths(Path("*")).pull_request))
    pushed = {one.tracked for file in files if (one := load_if_whole(file, PullRequest))}
    return [name for name in landing_targets(farm.repository, base) if name not in pushed]


def merged_commit(farm: Farm, id: str) -> str | None:
    """The builder's commit that the forge has merged, squashed or not; later commits are not included."""
    one = load_if_whole(farm.run(id).pull_request, PullRequest)
    return one.landed_commit if one else None
