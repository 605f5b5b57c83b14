"""All runtimes at a glance: installed, which version, usable or why not."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass
from pathlib import Path

from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.environment import allowed_environment

_SECONDS = 20.0


@dataclass(frozen=True, slots=True)
class Survey:
    name: str
    title: str
    version: str | None
    problem: str | None

    def to_json(self) -> dict[str, object]:
        return {**asdict(self), "usable": self.problem is None}


def survey_runtimes(
    env: Mapping[str, str], root: Path | None, commands: Mapping[str, Sequence[str] | None]
) -> list[Survey]:
    """Every runtime, all versions asked for at once."""
    adapters = [get_adapter(name, root) for name in adapter_names(root)]
    with ThreadPoolExecutor(max_workers=len(adapters)) as pool:
        return list(pool.map(lambda adapter: _survey(adapter, env, commands.get(adapter.name)), adapters))


def read_version(
    adapter: RuntimeAdapter, env: Mapping[str, str], command: Sequence[str] | None
) -> str | None:
    """What `--version` says, or None; runtimes of af's own and of the repository are not asked."""
    if not adapter.tells_version:
        return None
    found = adapter.find_command(env, command)
    if found is None:
        return None
    own = allowed_environment(env, key_names=())
    try:
        done = subprocess.run(
            [*found, "--version"],
            env=own,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=_SECONDS,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired):
        return None
    number = re.search(r"\d+\.\d+\.\d+\S*", done.stdout)
    return number[0].rstrip(".") if number else None


def _survey(adapter: RuntimeAdapter, env: Mapping[str, str], command: Sequence[str] | None) -> Survey:
    problem = adapter.problem(env, command=command)
    return Survey(adapter.name, adapter.title, read_version(adapter, env, command), problem)
