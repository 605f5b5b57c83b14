"""Carries out one call from home on this machine, in the farm that it has for it."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import Any, Literal

import msgspec
from msgspec import Struct

from agent_farm import __version__
from agent_farm.builders.record import BuilderRecord
from agent_farm.disk import file_lock, make_directory
from agent_farm.errors import AgentFarmError, ToolMissing, UsageError, as_farm_error
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.panes import require_pane
from agent_farm.farm.runtime_start import STARTS_AT_ONCE
from agent_farm.fleet import book
from agent_farm.fleet.calling import Call
from agent_farm.git.asking import side_by_side
from agent_farm.git.git_process import run_git
from agent_farm.launch import is_no_option
from agent_farm.operations.for_home.copied_builders import (
    Again,
    HandOver,
    PlacedAgain,
    Withdraw,
    checkpoints,
    context_for_home,
    end_superseded,
    handed_over,
    placed_again,
    restored,
    withdrawn,
)
from agent_farm.operations.for_home.heard import while_heard
from agent_farm.operations.for_home.home_checkout import check_out
from agent_farm.operations.for_home.pieces import PACK_VERBS, carry
from agent_farm.operations.for_home.placed_builders import Placement, placed
from agent_farm.operations.operation import Answer, document
from agent_farm.operations.prune import Pruned, Removal
from agent_farm.operations.remove_decided import RemoveDecided, remove_decided_here
from agent_farm.operations.requests import read_request
from agent_farm.operations.restore import Restore
from agent_farm.operations.table import MODULES, load
from agent_farm.own_files import require_own_directory
from agent_farm.paths import user_state_directory
from agent_farm.tmux.viewing import give_back_size, viewer_argv, window_size

_OF_SESSIONS = ("session_begin", "session_look")
_VARIABLE = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")
# Variables that a machine decides for itself.
_OWN = frozenset({"PATH", "HOME", "USER", "LOGNAME", "SHELL", "TMPDIR", "LD_PRELOAD", "LD_LIBRARY_PATH"})


class Hello(Struct, frozen=True):
    """`format` is the object format of the repository; commits there are made as `name` and `email`."""

    format: str
    name: str | None = None
    email: str | None = None


class Several(Struct, frozen=True):
    verb: Literal["place", "place_again"]
    requests: tuple[dict[str, Any], ...]


class Each(Answer):
    """In the order of the requests, each with `answer` or `error`."""

    each: tuple[dict[str, Any], ...]


class Welcome(Answer):
    """The programs on a machine, and where the farm is."""

    place: book.Place
    git: str
    tmux: str
    python: str
    program: str = ""


def answered(data: bytes, beat: Callable[[], None]) -> Iterator[dict[str, Any]]:
    """The lines of the reply; the last one is the answer or the error. See `while_heard` for `beat`."""
    told: list[str] = []
    try:
        asked = _read(data)
        given = {name: value for name, value in asked.environment.items() if _may_be_set(name)}
        if asked.verb not in _OF_SESSIONS:  # the server that is started for them would get these, too
            os.environ.update(given)
        place = place_of(asked.directory, asked.farm)
        answer = document(_carry_out(asked, place, told, given, beat))
    except (AgentFarmError, OSError) as problem:
        yield from ({"told": text} for text in told)
        yield {"error": _words_of(as_farm_error(problem))}
        return
    yield from ({"told": text} for text in told)
    yield {"answer": answer}


def _words_of(error: AgentFarmError) -> dict[str, Any]:
    return {name: getattr(error, name) for name in ("code", "what", "why", "hint", "evidence", "consent")}


def _read(data: bytes) -> Call:
    try:
        asked = msgspec.json.decode(data, type=Call)
    except (msgspec.DecodeError, ValueError, RecursionError) as error:
        raise UsageError("This is not a call from af", why=str(error)) from error
    if asked.software != __version__:
        raise UsageError(
            f"af here has version {__version__}, and was asked by {asked.software!r:.40}",
            why="Both must be the same.",
        )
    return asked


def _may_be_set(name: str) -> bool:
    return _VARIABLE.fullmatch(name) is not None and name not in _OWN and not name.startswith("GIT_")


def place_of(directory: str, farm: str) -> Path:
    return (Path(directory) if directory else user_state_directory() / "fleet") / farm


def _carry_out(
    asked: Call, place: Path, told: list[str], given: Mapping[str, str], beat: Callable[[], None]
) -> Answer:
    welcome = _welcome(place, msgspec.convert(asked.request, Hello)) if asked.verb == "hello" else None
    if not place.is_dir():
        raise AgentFarmError(f"There is no farm in {place}", hint="af fleet status")
    if asked.fences:
        end_superseded(open_farm(place, told.append), asked.fences, told)
    if welcome is not None:
        return welcome
    if asked.verb in PACK_VERBS:
        return carry(place, asked.verb, asked.request)
    if asked.verb == "several":
        return _several(place, msgspec.convert(asked.request, Several), told)
    if asked.verb == "place":
        return placed(place, msgspec.convert(asked.request, Placement), told)
    if asked.verb in _OF_SESSIONS:  # loads session records, which few calls need
        from agent_farm.operations.for_home.sessions_for_home import about_session

        return about_session(place, asked.verb, asked.request, given, told)
    farm = open_farm(place, told.append)
    if asked.verb in _COPIES:
        return _COPIES[asked.verb](farm, asked.request, told)
    if asked.verb not in MODULES:
        raise UsageError(f"There is no verb {asked.verb!r:.40}")
    verb = load(asked.verb)
    request = read_request(verb, asked.request)
    with while_heard(beat) if verb.waits else nullcontext():
        found: Answer = verb.collect(list(verb.run(context_for_home(farm, told), request)))
    return found


def _welcome(place: Path, hello: Hello) -> Welcome:
    """Make the repository, which is still empty."""
    if hello.format not in ("sha1", "sha256"):
        raise UsageError(f"{hello.format!r:.20} is not an object format")
    tmux = shutil.which("tmux")
    if tmux is None:
        raise ToolMissing("tmux is not installed there", hint="sudo apt-get install tmux")
    git = run_git(Path("/"), "--version").strip()
    make_directory(place.parent)
    require_own_directory(place.parent)
    with file_lock(place.with_name(f".{place.name}.lock")):
        # repeated if it exists: whoever made it may have been killed halfway
        run_git(place.parent, "init", "--quiet", f"--object-format={hello.format}", "--", str(place))
        for name, value in (("user.name", hello.name), ("user.email", hello.email)):
            if value is not None and is_no_option(value):
                run_git(place, "config", name, value)
    program = str(Path(sys.executable).with_name("af"))
    return Welcome(str(place), git, tmux, sys.version.split()[0], program)


def _several(place: Path, asked: Several, told: list[str]) -> Each:
    """Run them side by side; a failure does not stop the others."""
    found: Mapping[int, Answer | AgentFarmError]
    if asked.verb == "place_again":
        found = _all_placed_again(open_farm(place, told.append), asked.requests, told)
    else:
        places = [msgspec.convert(one, Placement) for one in asked.requests]
        make = {n: partial(placed, place, one, told) for n, one in enumerate(places)}
        found = side_by_side(make, workers=STARTS_AT_ONCE)
    return Each(
        tuple(
            {"error": _words_of(one)} if isinstance(one, AgentFarmError) else {"answer": document(one)}
            for _, one in sorted(found.items())
        )
    )


def _all_placed_again(
    farm: Farm, requests: Sequence[dict[str, Any]], told: list[str]
) -> dict[int, PlacedAgain | AgentFarmError]:
    """Those that start at the same commit, whose settings apply to them, run side by side."""
    asked = {n: msgspec.convert(one, Again) for n, one in enumerate(requests)}
    found = dict[int, PlacedAgain | AgentFarmError]()
    with file_lock(farm.root.with_name(f".{farm.root.name}.lock"), inherit=True) as lock:
        for commit in {str(one.record.get("base_commit")) for one in asked.values()}:
            check_out(farm.root, commit, lock)
            there = open_farm(farm.root, told.append)
            own = {n: one for n, one in asked.items() if str(one.record.get("base_commit")) == commit}
            acts = {n: partial(placed_again, there, one, told) for n, one in own.items()}
            found |= side_by_side(acts, workers=STARTS_AT_ONCE)
    return found


def _place_again(farm: Farm, request: dict[str, Any], told: list[str]) -> Answer:
    (found,) = _all_placed_again(farm, [request], told).values()
    if isinstance(found, AgentFarmError):
        raise found
    return found


def _remove_decided(farm: Farm, asked: RemoveDecided) -> Pruned:
    found = remove_decided_here(farm, farm.require_exact(asked.id), asked)
    return Pruned((found,)) if isinstance(found, Removal) else Pruned((), (found.id,))


_COPIES: Mapping[str, Callable[[Farm, dict[str, Any], list[str]], Answer]] = {
    "checkpoint": lambda farm, request, told: checkpoints(
        farm, msgspec.convert(request["ids"], tuple[str, ...])
    ),
    "hand_over": lambda farm, request, told: handed_over(farm, msgspec.convert(request, HandOver)),
    "place_again": _place_again,
    "restore": lambda farm, request, told: restored(
        context_for_home(farm, told), msgspec.convert(request, Restore)
    ),
    "withdraw": lambda farm, request, told: withdrawn(farm, msgspec.convert(request, Withdraw)),
    "remove_decided": lambda farm, request, told: _remove_decided(
        farm, msgspec.convert(request, RemoveDecided)
    ),
}


def view_pane(record: BuilderRecord, *, read_only: bool) -> int:
    """Show a browser's terminal until it is closed; a viewer who only watches does not resize the window."""
    server, pane = require_pane(record)
    ignores_size = read_only and pane.attached > 0
    argv = viewer_argv(server.socket, pane.session_id, read_only=read_only, ignores_size=ignores_size)
    before = window_size(server.socket, pane.session_id)
    status = subprocess.run(argv, check=False).returncode
    if before is not None:
        give_back_size(server.socket, pane.session_id, before)
    return status
