"""Starts a runtime from a record, for spawn and resume: the run directory, then the tmux session."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec.structs import replace

from agent_farm.builders.record import BuilderRecord, stored_record
from agent_farm.disk import make_directory, replace_file
from agent_farm.farm.chosen_runtime import Chosen
from agent_farm.farm.farm import Farm
from agent_farm.farm.waiting import queue_directory
from agent_farm.launch import Launch
from agent_farm.pane.pane_argv import await_tools_argv, launcher_argv, report_argv, tell_argv
from agent_farm.paths import names_of_user_directories
from agent_farm.runtimes.cli import Start
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.runtimes.mcp_config import McpServer
from agent_farm.server.launching import ensure_server
from agent_farm.server.tokens import mint_builder_token
from agent_farm.sessions.roster import own_butler_name

if TYPE_CHECKING:
    from agent_farm.pane.launchfile import Copy

# Variables for a command that shows something on the user's desktop.
DESKTOP = ("DBUS_SESSION_BUS_ADDRESS", "DISPLAY", "WAYLAND_DISPLAY", "XAUTHORITY", "XDG_RUNTIME_DIR")
# How long a first prompt waits for the tools of a server, which may be dead.
TOOLS_SECONDS = 20.0  # less than HOOK_SECONDS
# At a time, because a start mostly waits for the disk and tmux.
STARTS_AT_ONCE = 4


def prepare_start(
    farm: Farm,
    record: BuilderRecord,
    chosen: Chosen,
    *,
    prompt: str | None,
    role_text: str | None,
    resume: bool = False,
) -> Start:
    """Write to `.agent-farm/runs/<id>/` what does not depend on the worktree, which need not be there yet."""
    run = farm.run(record.id)
    make_directory(run.directory)
    if _limits_builds(farm):
        from agent_farm.farm.builds import stand_before_builds

        stand_before_builds(farm, record)
    start = _start(farm, record, chosen, prompt, role_text, resume)
    if start.prompt_file is not None and prompt is not None:
        replace_file(start.prompt_file, prompt)
    if role_text is not None:
        replace_file(run.role, role_text)  # a resume reads it again
    return start


def start_runtime(
    farm: Farm,
    record: BuilderRecord,
    chosen: Chosen,
    start: Start,
    *,
    copies: Sequence[Copy] = (),
    setup: str | None = None,
) -> None:
    """Write the rest, and open the tmux session whose program is the launcher.

    Before the runtime, the launcher carries out `copies` (and links) and `setup`.
    """
    run, prompted = farm.run(record.id), start.prompt is not None
    if _is_directory_of(record.worktree_path, cwd := record.worktree_path / record.subdirectory):
        start = replace(start, cwd=cwd)
    launch = chosen.adapter.interactive(start)
    for file in launch.files:
        make_directory(file.path.parent)
        own = file.path.is_relative_to(run.directory)
        replace_file(file.path, file.content, mode=file.mode, lasting=not own)
    document = {
        **_launch_document(farm, record, launch),
        "copies": [{"from": str(one.source), "to": str(one.target), "how": one.how} for one in copies],
        "setup": setup,
        "before_setup": _before_setup(farm, record) if setup else [],
        "hooks": chosen.adapter.cli.hooks_to_json(prompted=prompted),
        "prompted": prompted,
    }
    replace_file(run.launch, json.dumps(document, indent=1) + "\n", lasting=False)
    replace_file(run.record, json.dumps(stored_record(record, farm.paths), indent=1) + "\n")
    argv = launcher_argv(record.session, run.directory)
    farm.tmux.start_session(record.session, argv, cwd=record.worktree_path, window=record.id)


def builder_environment(farm: Farm, record: BuilderRecord, chosen: Chosen) -> dict[str, str]:
    """What a builder may see: the variables of the allow-list, and those that identify it."""
    env = allowed_environment(
        os.environ,
        key_names=chosen.adapter.cli.own_variables(os.environ, record.model),
        declared=farm.settings.items("env.pass"),
    )
    for name in ("TMUX", "TMUX_PANE", "TERM", "COLORTERM"):  # the pane has its own
        env.pop(name, None)
    # the pane lacks XDG_*, but `af` has to find the same directories there as its caller
    env |= names_of_user_directories(os.environ)
    if _limits_builds(farm):
        from agent_farm.farm.builds import path_before_builds

        env |= path_before_builds(farm, record, env)
    return env | {
        "AF_BUILDER_ID": record.id,
        "AF_BRANCH": record.branch,
        "AF_ROOT": str(farm.root),
        "AF_WORKTREE": record.worktree,
        "AF_RUN_DIR": str(farm.paths.run(record.id)),
        "AF_RUN": record.run,
        **({"AF_PORT": str(record.ports[0])} if record.ports else {}),
    }


def _limits_builds(farm: Farm) -> bool:
    """Few farms do, and what limits them takes 3 ms to load."""
    return farm.settings.number("limits.builds") > 0


def _before_setup(farm: Farm, record: BuilderRecord) -> list[str]:
    if not _limits_builds(farm):
        return []
    from agent_farm.farm.builds import before_setup

    return before_setup(farm, record)


def _is_directory_of(top: Path, place: Path) -> bool:
    """Inside the worktree: a link may lead out of it, where a runtime must not write."""
    real = Path(os.path.realpath(place))
    return real.is_relative_to(os.path.realpath(top)) and real.is_dir()


def _start(
    farm: Farm,
    record: BuilderRecord,
    chosen: Chosen,
    prompt: str | None,
    role_text: str | None,
    resume: bool,
) -> Start:
    run = farm.run(record.id)
    return Start(
        mode="pane",
        builder=record.id,
        run=record.run,
        home=run.directory,
        place=run.directory,
        top=record.worktree_path,
        cwd=record.worktree_path,
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
        server=_server(farm, record.id),
        extra_args=chosen.extra_args,
        unlocked=chosen.unlock,
        command=chosen.command,
    )


def _server(farm: Farm, builder_id: str) -> McpServer | None:
    """The farm's server as this builder may use it, with its own token; never waited for.

    None with `[server] enabled = false`: the runtime then gets an empty MCP configuration, strictly.
    """
    if not farm.settings.flag("server.enabled"):
        return None
    address = ensure_server(farm.root)
    token = mint_builder_token(farm.paths.runs, builder_id)
    return McpServer(own_butler_name(farm.root), address.mcp_url(builder_id), token)


def _launch_document(farm: Farm, record: BuilderRecord, launch: Launch) -> dict[str, object]:
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
        "shell": [_shell(), "-i"],
        "notify": _notice(farm),
        "tell": _told(farm, record),
        "check": _turn_end(farm, record),
        "at_end": _command("prune", record.id) if record.ephemeral else None,
        "next": {"where": str(queue_directory(farm.paths)), "argv": _command("queue")},
    }


def _notice(farm: Farm) -> dict[str, object] | None:
    """The form that `pane/notices.py` reads."""
    command = farm.settings.text("notify.command")
    if not command:
        return None
    return {
        "argv": ["/bin/sh", "-c", command],
        "on": list(farm.settings.items("notify.on")),
        "env": allowed_environment(os.environ, declared=DESKTOP),
        "names": list(farm.settings.items("env.pass")),
    }


def _told(farm: Farm, record: BuilderRecord) -> dict[str, object] | None:
    """The form that `pane/tell.py` reads."""
    targets = farm.settings.items("notify.to")
    if not targets:
        return None
    return {
        "argv": tell_argv(farm.run(record.id).directory),
        "on": list(farm.settings.items("notify.on")),
        "env": allowed_environment(os.environ, declared=DESKTOP),
        "names": [],
        "to": list(targets),
        "tmux": ["tmux", "-S", record.socket],
        "farm": farm.paths.name,
    }


def _turn_end(farm: Farm, record: BuilderRecord) -> dict[str, object] | None:
    """What proves its work when a turn has ended; runs in the user's environment, not the runtime's."""
    if farm.settings.text("check.auto") != "idle":
        return None
    known = allowed_environment(os.environ, declared=("GIT_CONFIG_GLOBAL", "XDG_CACHE_HOME"))
    env = {name: value for name, value in known.items() if not name.startswith(("AF_", "TMUX"))}
    return {
        "argv": [sys.executable, "-P", "-m", "agent_farm.landing.turn_end", str(farm.root), record.id],
        "on": ["idle", "exited"],
        "env": env | names_of_user_directories(os.environ),
        "names": list(farm.settings.items("env.pass")),
    }


def _shell() -> str:
    shell = os.environ.get("SHELL", "")
    return shell if os.path.isabs(shell) and os.access(shell, os.X_OK) else "/bin/sh"


def _command(*words: str) -> list[str]:
    """Commands after the runtime's end are run by `af` itself: `af prune`, for example, with all its
    refusals.

    They are not processes of the run that ended.
    """
    names = ("TMUX_TMPDIR", "GIT_CONFIG_GLOBAL")  # where this `af` looks, and the pane would not
    where = [f"{name}={os.environ[name]}" for name in names if os.environ.get(name)]
    return ["env", "-u", "AF_RUN", *where, sys.executable, "-P", "-m", "agent_farm", *words]
