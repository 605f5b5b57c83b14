"""All runtimes at a glance: whether each is installed, in which version, and usable, or why not."""

from __future__ import annotations

import re
import shlex
import subprocess
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

from msgspec import Struct

from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.bounded_run import run_bounded
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.lines import last_line
from agent_farm.runtimes.origin import runtime_problem
from agent_farm.settings import Settings

_SECONDS = 15.0


class RuntimeFound(Struct, frozen=True):
    """`problem` says why it cannot be used (null if it can), `note` what is worth knowing about it."""

    name: str
    title: str
    version: str | None
    problem: str | None
    usable: bool
    note: str | None = None


def survey_runtimes(
    env: Mapping[str, str], root: Path | None, settings: Settings | None
) -> tuple[RuntimeFound, ...]:
    """Asks all for their versions at once. A repository's command is not asked, because that would run it."""
    names = adapter_names(root)
    with ThreadPoolExecutor(max_workers=len(names)) as pool:
        return tuple(pool.map(partial(_survey, env, root, settings), names))


def _version(
    adapter: RuntimeAdapter, env: Mapping[str, str], command: Sequence[str] | None
) -> tuple[str | None, str | None]:
    """The version, and why a program that reports none, or one that is too old, cannot be used."""
    found = adapter.find_command(env, command) if adapter.cli.tells_version else None
    if found is None:
        return None, None
    own = allowed_environment(env, key_names=())
    try:
        done = run_bounded([*found, "--version"], cwd="/", env=own, seconds=_SECONDS)
    except subprocess.TimeoutExpired:
        return None, f"{found[0]} --version does not end"
    except OSError as error:
        return None, f"{found[0]} cannot be started: {error.strerror}"
    output, complaint = done.stdout.decode(errors="replace"), done.stderr.decode(errors="replace")
    number = re.search(r"\d+\.\d+\.\d+\S*", output)
    if number is None or done.returncode:
        said = last_line(complaint) or last_line(output) or f"exit code {done.returncode}"
        return None, f"{found[0]} --version fails: {said}"
    version = number[0].rstrip(".")
    return version, None if command else adapter.version_problem(version)


def _survey(env: Mapping[str, str], root: Path | None, settings: Settings | None, name: str) -> RuntimeFound:
    if root is None or settings is None:
        adapter = get_adapter(name)
        version, failure = _version(adapter, env, None)
        return _told(name, adapter, version, adapter.problem(env) or failure)
    problem = runtime_problem(root, settings, name, env)
    try:
        adapter = get_adapter(name, root)
    except AgentFarmError:
        return RuntimeFound(name, name, None, problem, usable=False)
    own = settings.runtime(name).command
    is_repositorys = bool(settings.requests([f"runtimes.{name}.command"]))
    command = shlex.split(own) if own else None
    version, failure = (None, None) if is_repositorys else _version(adapter, env, command)
    return _told(name, adapter, version, problem or failure)


def _told(name: str, adapter: RuntimeAdapter, version: str | None, problem: str | None) -> RuntimeFound:
    note = adapter.unfamiliar(version) if version and not problem else None
    return RuntimeFound(name, adapter.cli.title, version, problem, problem is None, note)
