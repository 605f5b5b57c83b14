"""Refuses to continue a conversation from a configuration home that does not have it.

Some CLIs get a private home if a key is set, and the user's own home with a login. Which one it is is decided
at each start, from an environment that may have changed since the conversation began.
"""

from __future__ import annotations

from pathlib import Path

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.launch import as_command
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.conversation_files import find_files


def require_within_reach(record: BuilderRecord, cli: Cli, start: Start) -> None:
    if (file := _out_of_reach(cli, start)) is None:
        return
    keys = [key for key in cli.keys if start.env.get(key)]
    if not file.is_relative_to(start.home):
        begun, now, hint = "your login", "a key", as_command("unset", *keys) if keys else None
    elif keys:
        setting = f"runtimes.{record.runtime}.unlock"
        begun, now, hint = "a key", setting, as_command("af", "config", "unset", setting)
    else:
        begun, now, hint = "a key", "your login", f"export {cli.keys[0]}=…"
    raise AgentFarmError(
        f"{record.id} was begun with {begun}, and would now start with {now}",
        why=f"{cli.title} would not find its conversation, which is in {file}.",
        hint=hint,
    )


def _out_of_reach(cli: Cli, start: Start) -> Path | None:
    """A file of the conversation, if all are in the other home."""
    if cli.home is None or not cli.home.only_with_key or start.conversation_id is None:
        return None
    is_private = cli.is_at_home(start.env) and not start.unlocked
    found = find_files(cli, start.conversation_id, private=start.home, env=start.env, cwd=start.cwd)
    files = [file for _, file in found]
    if any(file.is_relative_to(start.home) is is_private for file in files):
        return None
    return next(iter(files), None)
