"""`af butler`, `af mcp`."""

from __future__ import annotations

import os
import sys
import time
from pathlib import Path
from typing import Any

import click

from agent_farm.cli.options import current_farm, json_option
from agent_farm.cli.output import answer, answer_bytes, answer_json, narrate, narrate_hint
from agent_farm.consent import HINT
from agent_farm.errors import AgentFarmError, NotFound

_name = click.argument("name", required=False)


@click.group()
def butler() -> None:
    """The farm's server: builders talk to it, sessions run in it, schedules fire from it.

    `af spawn` starts it when needed. NAME is a butler in codev/roster/; without it, the farm's own is meant.
    """


@butler.command()
@_name
@json_option
def start(name: str | None, as_json: bool) -> None:
    """Start the server, or say where it is."""
    from agent_farm.server.launching import ensure_server, running_server

    root = current_farm().root
    was_there = running_server(root, name) is not None
    address = ensure_server(root, name)
    _wait_until_up(root, name)
    if as_json:
        answer_json({"server": _facts(root, name), "started": not was_there})
    else:
        answer(f"http://localhost:{address.port}/mcp")
        narrate("Already running." if was_there else "Started.")
        _tell_what_waits(root, name)


def _tell_what_waits(root: Path, name: str | None) -> None:
    """A server starts nothing of a repository by itself; what it then will not do is said now."""
    from agent_farm.sessions.agreement import waiting_requests
    from agent_farm.sessions.butlers import load_butler

    if waiting := waiting_requests(root, load_butler(root, name)):
        narrate("Nobody has agreed to this yet, and it takes no effect:")
        for request in waiting:
            narrate(f"  {request.shown}")
        narrate_hint(HINT)


@butler.command()
@_name
@click.option("--now", is_flag=True, help="Do not wait for its sessions: end them, and kill it if need be.")
@json_option
def stop(name: str | None, now: bool, as_json: bool) -> None:
    """End the server. Its sessions get 10 s to end by themselves; builders keep running."""
    from agent_farm.server.stopping import stop_server

    stopped = stop_server(current_farm(tolerant=True).root, name, now=now)
    if as_json:
        answer_json({"stopped": stopped})
    else:
        answer("stopped" if stopped else "not running")


@butler.command()
@_name
@json_option
def status(name: str | None, as_json: bool) -> int:
    """Say whether the server runs, and where; with several butlers and no NAME, of each.

    Exit code 1 when none runs.
    """
    from agent_farm.sessions.butlers import all_butler_names

    root = current_farm(tolerant=True).root
    names = [name] if name else all_butler_names(root)
    if len(names) > 1:
        return _show_all(root, names, as_json)
    facts = _facts(root, name)
    if as_json:
        answer_json({"server": facts})
    elif facts["running"]:
        for key, value in {**facts, "started_at": _moment(facts["started_at"])}.items():
            answer(f"{key:<11} {'yes' if value is True else value}")
    else:
        answer("not running")
        narrate_hint("af butler start")
    return 0 if facts["running"] else 1


@butler.command()
@_name
@click.option("--lines", "-n", type=click.IntRange(min=1), default=50, show_default=True)
@click.option("--follow", "-f", is_flag=True, help="Go on as lines are written.")
def logs(name: str | None, lines: int, follow: bool) -> None:
    """Print the end of the server's log."""
    from agent_farm.server.address import server_files

    log = server_files(current_farm(tolerant=True).root, name).log
    if not log.exists():
        raise NotFound("There is no log: the server has never run", hint="af butler start")
    if follow:
        os.execvp("tail", ["tail", "-n", str(lines), "-F", str(log)])
    answer_bytes(b"".join(log.read_bytes().splitlines(keepends=True)[-lines:]))


@click.command()
def mcp() -> None:
    """Serve the architect's tools over stdio, so that an AI session can run the farm.

    \b
      claude mcp add farm -- af mcp
      codex mcp add farm -- af mcp
    """
    from agent_farm.server.bridge import Bridge

    Bridge(current_farm(tolerant=True).root, sys.stdout.buffer).serve(sys.stdin.buffer)


def _moment(at: float) -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S", time.localtime(at))


def _show_all(root: Path, names: list[str], as_json: bool) -> int:
    found = [{"butler": name, **_facts(root, name)} for name in names]
    if as_json:
        answer_json({"server": found[0], "butlers": found})
    else:
        for facts in found:
            answer(f"{facts['butler']:<20} {facts['url'] if facts['running'] else 'not running'}")
    return 0 if any(facts["running"] for facts in found) else 1


def _facts(root: Path, name: str | None) -> dict[str, Any]:
    from agent_farm.server.address import server_files
    from agent_farm.server.launching import running_server

    address = running_server(root, name)
    if address is None:
        return {"running": False}
    from agent_farm.sessions.butlers import load_butler
    from agent_farm.sessions.stores import open_sessions

    known = load_butler(root, name)
    log = open_sessions(root)
    return {
        "running": True,
        "butler": known.name,
        "port": address.port,
        "url": f"http://localhost:{address.port}/mcp",
        "pid": address.pid,
        "supervisor": address.supervisor,
        "started_at": address.started_at,
        "sessions": log.count(known.name, "running"),
        "queued": log.count(known.name, "queued"),
        "log": str(server_files(root, name).log),
    }


def _wait_until_up(root: Path, name: str | None) -> None:
    """A person who starts it by hand wants to know whether it came up."""
    from agent_farm.server.launching import running_server

    deadline = time.monotonic() + 15
    while time.monotonic() < deadline:
        address = running_server(root, name)
        if address is None:
            why = _last_words(root, name)
            raise AgentFarmError("The server ended at once", why=why, hint="af butler logs")
        if address.pid is not None:
            return
        time.sleep(0.05)
    raise AgentFarmError("The server did not start in time", hint="af butler logs")


def _last_words(root: Path, name: str | None) -> str | None:
    from agent_farm.server.address import server_files

    try:
        lines = server_files(root, name).log.read_text(errors="replace").splitlines()
    except OSError:
        return None
    return next((line.strip() for line in reversed(lines) if line.strip()), None)
