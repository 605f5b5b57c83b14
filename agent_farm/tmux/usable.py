"""Whether tmux can be used: it has to be there, and new enough."""

from __future__ import annotations

import os
import re

from agent_farm.errors import AgentFarmError, ToolMissing
from agent_farm.search_path import find_program
from agent_farm.tmux.tmux_process import ask_tmux, install_command

_OLDEST = (3, 3)


def require_tmux() -> None:
    """ToolMissing without tmux. Whether it is new enough is known from the answer to its first command."""
    if not find_program("tmux", os.environ.get("PATH", os.defpath)):
        raise ToolMissing("tmux is not installed", hint=install_command())


def tmux_problem() -> str | None:
    """None, or why tmux cannot be used here and what to do."""
    try:
        version = ask_tmux(None, (("-V",),)).out.strip().removeprefix("tmux ")
    except AgentFarmError as error:
        return f"{error.what}: {error.hint or error.why}"
    return f"tmux {version} is older than {_oldest()}: {install_command()}" if is_too_old(version) else None


def is_too_old(version: str) -> bool:
    """False for a version without a number, such as master."""
    found = re.search(r"(\d+)\.(\d+)", version)
    return found is not None and (int(found[1]), int(found[2])) < _OLDEST


def server_is_too_old(version: str) -> str:
    return (
        f"The server is tmux {version}, which is older than {_oldest()}. A newer tmux is used once all"
        " sessions of that server have ended."
    )


def _oldest() -> str:
    return ".".join(map(str, _OLDEST))
