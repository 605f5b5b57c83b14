"""What about a runtime comes from the repository, and needs the user's consent before it starts."""

from __future__ import annotations

import os
import shlex
from collections.abc import Mapping
from pathlib import Path

from agent_farm.consent import HINT, ConsentRequest, named_files, not_agreed, remember
from agent_farm.errors import AgentFarmError
from agent_farm.runtimes import ADAPTERS, adapter_names, get_adapter
from agent_farm.settings import Settings


def runtime_requests(
    root: Path, settings: Settings, name: str, *, permissions: str | None = None
) -> list[ConsentRequest]:
    """What to ask about before the runtime `name` starts; `permissions` were given as an option."""
    own = f"runtimes.{name}.permissions"
    keys = [f"runtimes.{name}.{key}" for key in ("command", "args", "unlock")]
    if permissions is None:
        keys.append(own if settings.runtime(name).permissions else "spawn.permissions")
    program = repository_program(root, name)
    return [*([program] if program else []), *settings.requests(keys)]


def runtime_problem(root: Path, settings: Settings, name: str, env: Mapping[str, str]) -> str | None:
    """Why starting it would fail; looks without starting anything."""
    if not_agreed(root, settings.requests([f"runtimes.{name}.command"])):
        return f"the repository replaces its command with one that nobody has agreed to; {HINT}"
    command = settings.runtime(name).command
    try:
        adapter = get_adapter(name, root)
    except AgentFarmError as error:  # its entry in agent_runtime.json is wrong
        return error.why or error.what
    model = settings.runtime(name).model
    return adapter.problem(env, command=shlex.split(command) if command else None, model=model)


def repository_program(root: Path, name: str) -> ConsentRequest | None:
    """The program behind a runtime that the repository declares in agent_runtime.json."""
    if name in ADAPTERS:
        return None
    from agent_farm.runtimes.acp_config import AcpRuntime  # no runtime of ours needs these
    from agent_farm.runtimes.external_config import FILE_NAME, load_external_runtime

    runtime = load_external_runtime(root, name)
    if isinstance(runtime, AcpRuntime):
        return ConsentRequest(
            f"{FILE_NAME} {name}", runtime.shown, named_files(root, shlex.join(runtime.acp))
        )
    if runtime.shipped:
        return None
    return ConsentRequest(f"{FILE_NAME} {name}", os.path.relpath(runtime.adapter, root), (runtime.adapter,))


def agree_by_name(root: Path, name: str) -> None:
    """A person who types the name of a repository's own runtime approves running it.

    The name of one that af ships says nothing about what a repository has put in its place.
    """
    program = repository_program(root, name) if name in adapter_names(root) else None
    if program is None:
        return
    from agent_farm.runtimes.executables.shipped import EXECUTABLES

    if name not in EXECUTABLES:
        remember(root, [program])
