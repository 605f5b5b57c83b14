"""From a record to a runtime in a pane, for spawn and resume: the run directory, then the tmux session."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_farm.builders.record import BuilderRecord, stored_record
from agent_farm.disk import make_directory, replace_file
from agent_farm.farm.chosen_runtime import Chosen
from agent_farm.farm.farm import Farm
from agent_farm.launch import Launch
from agent_farm.pane.pane_argv import await_tools_argv, launcher_argv, report_argv
from agent_farm.paths import names_of_user_directories
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.mcp_config import McpServer

# What a command that shows something on the person's desktop needs.
DESKTOP = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
# For how long a first prompt waits for the tools of a server that may be dead.
TOOLS_SECONDS = 6.0


@dataclass(frozen=True, slots=True)
class Copy:
    source: Path
    target: Path


@dataclass(frozen=True, slots=True)
class Preparation:
    """What the launcher does to a tree before the runtime starts."""

    copies: tuple[Copy, ...] = ()
    setup: str | None = None


def draw_run() -> str:
    """The name of one start of a builder: its events are bound to it."""
    return os.urandom(6).hex()


def start_runtime(
    farm: Farm,
    record: BuilderRecord,
    chosen: Chosen,
    *,
    prompt: str | None,
    role_text: str | None,
    mcp_server: McpServer | None,
    preparation: Preparation,
    resume: bool = False,
) -> None:
    """Write `.agent-farm/runs/<id>/` and open the tmux session whose program is the launcher."""
    run = farm.run(record.id)
    make_directory(run.directory)
    order = _order(farm, record, chosen, prompt, role_text, mcp_server, resume)
    if order.prompt_file is not None and prompt is not None:
        replace_file(order.prompt_file, prompt)
    if role_text is not None:
        replace_file(run.role, role_text)
    launch = chosen.adapter.interactive(order)
    for file in launch.files:
        make_directory(file.path.parent)
        replace_file(file.path, file.content, mode=file.mode)
    hooks = chosen.adapter.cli.hooks.to_json(prompted=prompt is not None)
    document = _launch_document(farm, record, launch, hooks, preparation)
    document["prompted"] = prompt is not None
    replace_file(run.launch, json.dumps(document, indent=1) + "\n")
    replace_file(run.record, json.dumps(stored_record(record, farm.paths), indent=1) + "\n")
    argv = launcher_argv(record.session, run.directory)
    farm.tmux.start_session(record.session, argv, cwd=record.worktree_path, window=record.id)


def builder_environment(farm: Farm, record: BuilderRecord, chosen: Chosen) -> dict[str, str]:
    """What a builder may see: the names of the allow-list, and what tells it who it is."""
    env = allowed_environment(
        os.environ,
        key_names=chosen.adapter.cli.own_variables(os.environ, record.model),
        declared=farm.settings.items("env.pass"),
    )
    for name in ("TMUX", "TMUX_PANE", "TERM", "COLORTERM"):  # the caller's terminal; the pane has its own
        env.pop(name, None)
    # the pane knows no XDG_*; what `af` finds in there has to be what its caller has
    env |= names_of_user_directories(os.environ)
    return env | {
        "AF_BUILDER_ID": record.id,
        "AF_BRANCH": record.branch,
        "AF_ROOT": str(farm.root),
        "AF_WORKTREE": record.worktree,
        "AF_RUN_DIR": str(farm.paths.run(record.id)),
        "AF_RUN": record.run,
        **({"AF_PORT": str(record.ports[0])} if record.ports else {}),
    }


def _order(
    farm: Farm,
    record: BuilderRecord,
    chosen: Chosen,
    prompt: str | None,
    role_text: str | None,
    mcp_server: McpServer | None,
    resume: bool,
) -> Start:
    run = farm.run(record.id)
    cwd = record.worktree_path / record.subdirectory
    return Start(
        mode="pane",
        builder=record.id,
        run=record.run,
        home=run.directory,
        place=run.directory,
        top=record.worktree_path,
        cwd=cwd if cwd.is_dir() else record.worktree_path,
        env=builder_environment(farm, record, chosen),
        report=report_argv(run.directory, record.run, json_reply=chosen.adapter.cli.hooks.wants_reply),
        await_tools=await_tools_argv(run.directory, record.run, TOOLS_SECONDS),
        prompt=prompt,
        prompt_file=None if prompt is None else run.message if resume else run.prompt,
        role=role_text or "",
        model=record.model,
        permissions=chosen.permissions,
        conversation_id=record.conversation_id,
        resume=resume,
        server=mcp_server,
        extra_args=chosen.extra_args,
        command=chosen.command,
    )


def _launch_document(
    farm: Farm,
    record: BuilderRecord,
    launch: Launch,
    hooks: dict[str, object],
    preparation: Preparation,
) -> dict[str, object]:
    return {
        "version": 1,
        "builder": record.id,
        "run": record.run,
        "runtime": record.runtime,
        "worktree": record.worktree,
        "cwd": str(launch.cwd),
        "argv": list(launch.argv),
        "env": dict(launch.env),
        "scratch": str(launch.scratch) if launch.scratch else None,
        "copies": [{"from": str(copy.source), "to": str(copy.target)} for copy in preparation.copies],
        "setup": preparation.setup,
        "shell": [_shell(), "-i"],
        "notify": _notice(farm),
        "at_end": list(_prune_argv(record)) if record.ephemeral else None,
        "hooks": hooks,
    }


def _notice(farm: Farm) -> dict[str, object] | None:
    """As `pane/notify.py` reads it."""
    command = farm.settings.text("notify.command")
    if not command:
        return None
    return {
        "argv": ["/bin/sh", "-c", command],
        "on": list(farm.settings.items("notify.on")),
        "env": allowed_environment(os.environ, declared=DESKTOP),
        "names": list(farm.settings.items("env.pass")),
    }


def _shell() -> str:
    shell = os.environ.get("SHELL", "")
    return shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else "/bin/sh"


def _prune_argv(record: BuilderRecord) -> Sequence[str]:
    """An ephemeral builder leaves through the same door as every other: `af prune`, refusals included."""
    found = (
        "TMUX_TMPDIR",
        "GIT_CONFIG_GLOBAL",
    )  # where this `af` looks, and the pane does not
    where = [f"{name}={os.environ[name]}" for name in found if os.environ.get(name)]
    return ("env", *where, sys.executable, "-P", "-m", "agent_farm", "prune", record.id)
