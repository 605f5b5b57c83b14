"""All that is left in the world of one farm's builders."""

from __future__ import annotations

import json
import os
import re
import subprocess
import zlib
from dataclasses import dataclass, fields
from pathlib import Path

from tests.gitrepo import git
from tests.waiting import wait_until

Names = frozenset[str]


@dataclass(frozen=True, slots=True)
class Traces:
    """Builder ids (or what is named after them), by the place they are found in."""

    records: Names
    worktrees: Names
    registered: Names
    branches: Names
    runs: Names
    ports: Names
    sessions: Names
    locks: Names
    processes: Names
    trash: Names
    temporary: Names

    def left(self, *, but: str = "") -> dict[str, list[str]]:
        """What there is, for an assertion that says what it found."""
        names = (field.name for field in fields(self) if field.name != but)
        return {name: sorted(value) for name in names if (value := getattr(self, name))}


def traces(repo: Path) -> Traces:
    state = repo / ".agent-farm"
    return Traces(
        records=frozenset(_builders(state)),
        worktrees=_names(repo / ".builders"),
        registered=frozenset(_registered(repo)),
        branches=frozenset(_branches(repo)),
        runs=_names(state / "runs"),
        ports=frozenset(_ports(repo)),
        sessions=frozenset(name for name in all_sessions() if name.startswith(f"af-{farm_name(repo)}-")),
        locks=frozenset(
            name.removeprefix("builder-").removesuffix(".lock")
            for name in _names(state / "locks")
            if name.startswith(("builder-", "delivery-"))
        ),
        processes=frozenset(_processes(repo)),
        trash=_names(state / "trash"),
        temporary=frozenset(_temporary(repo)),
    )


def farm_name(repo: Path) -> str:
    """Written down here as design has it, not taken from the product."""
    slug = re.sub(r"[^a-z0-9]+", "-", repo.name.lower()).strip("-")[:24].rstrip("-") or "farm"
    return f"{slug}-{zlib.crc32(os.fsencode(repo)) % 0x10000:04x}"


def all_sessions() -> list[str]:
    done = subprocess.run(
        ["tmux", "list-sessions", "-F", "#{session_name}"], capture_output=True, text=True, check=False
    )
    return done.stdout.splitlines()


def assert_whole_or_nothing(repo: Path, what: str, *, but: str = "") -> str | None:
    """The id of the one builder, when all of it is there; None when nothing is (`but` for one kind)."""
    found = traces(repo)
    if not found.records:
        left = found.left(but=but)
        assert left == {}, f"{what}: no builder, but {left}"
        return None
    (id,) = found.records
    everywhere = {
        name: {id} for name in ("records", "worktrees", "registered", "runs", "ports", "locks", "processes")
    }
    if "processes" not in found.left():  # the launcher is just starting
        wait_until(lambda: traces(repo).processes, what=f"a process of {id}, {what}")
        found = traces(repo)
    session = f"af-{farm_name(repo)}-{id}"
    expected = everywhere | {"branches": {f"builder/{id}"}, "sessions": {session}}
    left = found.left(but=but)
    assert left == {name: sorted(value) for name, value in expected.items()}, f"{what}: {left}"
    return id


def end_tmux() -> None:
    subprocess.run(["tmux", "kill-server"], capture_output=True, check=False)


def _branches(repo: Path) -> list[str]:
    """Stale locks of refs count: they would block the branch of a spec for good."""
    names = git(repo, "for-each-ref", "--format=%(refname:short)", "refs/heads/builder").split()
    return names + [str(path.relative_to(repo)) for path in (repo / ".git/refs").rglob("*.lock")]


def _names(directory: Path) -> Names:
    return frozenset(os.listdir(directory)) if directory.is_dir() else frozenset()


def _registered(repo: Path) -> list[str]:
    """Without those of removed builders: they are locked, and their worktree is in the trash."""
    found = []
    for admin in sorted((repo / ".git/worktrees").glob("*")):
        try:
            place = Path((admin / "gitdir").read_text().strip())
        except OSError:
            place = Path()
        kept = place.is_relative_to(repo / ".agent-farm/trash") and place.exists()
        if not (kept and (admin / "locked").exists()):
            found.append(admin.name)
    return found


def _builders(state: Path) -> list[str]:
    file = state / "registry.json"
    return list(json.loads(file.read_text())["builders"]) if file.exists() else []


def _ports(repo: Path) -> list[str]:
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/ports.json"
    return list(json.loads(file.read_text())["farms"].get(str(repo), {})) if file.exists() else []


def _processes(repo: Path) -> list[str]:
    """The builders of this farm that have a live process, by the environment it was started with."""
    return [one.get("AF_BUILDER_ID", "?") for one in environments_of(repo)]


def environments_of(repo: Path) -> list[dict[str, str]]:
    """Of the live processes of this farm's builders."""
    found = []
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            pairs = os.fsdecode((entry / "environ").read_bytes()).split("\0")
        except OSError:
            continue
        values = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        if values.get("AF_ROOT") == str(repo):
            found.append(values)
    return found


def _temporary(repo: Path) -> list[str]:
    """Half-written files and scratch directories of ours."""
    user = Path(os.environ["XDG_STATE_HOME"])
    places = [repo / ".agent-farm", user, repo / ".git"]
    left = [str(path) for place in places for path in place.rglob(".*.[0-9]*.tmp")]
    return left + [str(path) for path in Path(os.environ["TMPDIR"]).glob("af-*")]
