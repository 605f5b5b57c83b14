"""A user who has read what the repository wants."""

from __future__ import annotations

from pathlib import Path

from agent_farm.consent import remember
from agent_farm.farm.farm import open_farm
from agent_farm.operations.config import all_requests


def agree_to_all(root: Path) -> None:
    remember(root, all_requests(open_farm(root)))
