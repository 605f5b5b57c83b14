"""Resolves names on remotes: which remote-tracking branch a short name means, and what a base stands for."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Mapping
from functools import partial
from typing import Any

from msgspec import Struct

from agent_farm.git.git_process import ask_git, run_git
from agent_farm.git.repository import Repository

_HEADS, _REMOTES = "refs/heads/", "refs/remotes/"


class RemoteBranch(Struct, frozen=True):
    """A remote-tracking branch such as `origin/feature`, and the local name that would track it."""

    name: str
    local: str

    @property
    def ref(self) -> str:
        return f"{_REMOTES}{self.name}"


class Base(Struct, frozen=True):
    """What the name of a base means now.

    `branches` are the local branches that it stands for: itself or, for a remote-tracking branch, the one
    that tracks it. `refs` are all that carry the same line of work: itself, those branches, and what they
    track.
    """

    exists: bool
    is_branch: bool = False
    branches: tuple[str, ...] = ()
    refs: tuple[str, ...] = ()


class Upstream(Struct, frozen=True):
    """How far a local branch is from the remote-tracking branch it tracks, as of the last fetch."""

    name: str
    remote: str
    ahead: int = 0
    behind: int = 0


def upstreams_of(repository: Repository, branches: Collection[str]) -> dict[str, Upstream]:
    """The upstream of each local branch that has one; without remotes git is not even asked."""
    if not branches or not _has_remotes(repository):
        return {}
    fields = ("refname", "upstream:short", "upstream:remotename", "upstream:track,nobracket")
    form = "%09".join(f"%({name})" for name in fields)
    refs = [f"{_HEADS}{branch}" for branch in branches]
    rows = run_git(repository.root, "for-each-ref", f"--format={form}", *refs).splitlines()
    found = {}
    for ref, name, remote, track in (row.split("\t") for row in rows):
        if name and ref in refs:
            counts = {word: int(number) for word, number in re.findall(r"(ahead|behind) (\d+)", track)}
            found[ref.removeprefix(_HEADS)] = Upstream(name, remote, **counts)
    return found


def fetch_remote(repository: Repository, remote: str, *, seconds: float) -> None:
    """Fetch, without submodules, which have remotes of their own."""
    run_git(repository.root, "fetch", "--quiet", "--no-recurse-submodules", "--", remote, timeout=seconds)


def remote_of(repository: Repository, name: str) -> str | None:
    """The remote that `origin/main` is on, or that the local branch `main` tracks."""
    followed = upstreams_of(repository, [name]).get(name)
    if followed:
        return followed.remote
    return next((one for one in _remotes(repository) if name.startswith(f"{one}/")), None)


def home_remote(repository: Repository, branch: str | None) -> str | None:
    """The main remote: the one that `branch` tracks, else origin, else the first."""
    remotes = _remotes(repository) if _has_remotes(repository) else []
    followed = upstreams_of(repository, [branch]).get(branch) if branch and remotes else None
    wanted = (followed.remote if followed else "", "origin", *remotes)
    return next((name for name in wanted if name in remotes), None)


def forge_url(repository: Repository, branch: str | None) -> str | None:
    remote = home_remote(repository, branch)
    return run_git(repository.root, "remote", "get-url", "--", remote).strip() if remote else None


def _has_remotes(repository: Repository) -> bool:
    try:
        return b"[remote " in (repository.common_dir / "config").read_bytes()
    except OSError:
        return True


def find_base(repository: Repository, name: str) -> Base:
    """What `name` means; if it means nothing (any more), `exists` is False."""
    question = ("rev-parse", "--verify", "--quiet", "--symbolic-full-name", "--end-of-options", name)
    asked: dict[str, Callable[[], Any]] = {
        "name": partial(ask_git, repository.root, *question),
        "upstreams": partial(_upstreams, repository),
    }
    from agent_farm.git.asking import all_at_once  # takes 1 ms, and a spawn asks only for upstreams

    answers = all_at_once(asked)
    status, output, _ = answers["name"]
    if status:
        return Base(exists=False)
    ref = output.decode("utf-8", "surrogateescape").strip()
    if not ref.startswith((_HEADS, _REMOTES)):
        return Base(exists=True, refs=(ref or name,))
    upstreams = answers["upstreams"]
    branches = _standing_for(repository, ref, upstreams)
    followed = (upstreams.get(branch, "") for branch in branches)
    refs = (ref, *(f"{_HEADS}{branch}" for branch in branches), *followed)
    return Base(True, True, branches, tuple(dict.fromkeys(one for one in refs if one)))


def remote_branches_of(repository: Repository, name: str) -> list[RemoteBranch]:
    """What `name` may mean: `feature` on every remote that has it, or the branch that `origin/feature` names.

    Of several remotes, the one in `checkout.defaultRemote` wins, as in git.
    """
    if not repository.is_valid_branch(name):
        return []
    there = set(repository.remote_branches())
    remotes = _remotes(repository)
    named = [RemoteBranch(f"{remote}/{name}", name) for remote in remotes]
    whole = [
        RemoteBranch(name, name.removeprefix(f"{remote}/"))
        for remote in remotes
        if name.startswith(f"{remote}/")
    ]
    found = [one for one in named if one.ref in there] or [one for one in whole if one.ref in there]
    if len(found) > 1:
        first = run_git(repository.root, "config", "checkout.defaultRemote", ok=(0, 1)).strip()
        found = [one for one in found if first and one.name == f"{first}/{name}"] or found
    return sorted(found, key=lambda one: one.name)


def _standing_for(repository: Repository, ref: str, upstreams: Mapping[str, str]) -> tuple[str, ...]:
    """If several branches track it, the one with its own name: `git switch -c x origin/main` makes others."""
    if ref.startswith(_HEADS):
        return (ref.removeprefix(_HEADS),)
    name = ref.removeprefix(_REMOTES)
    remote = next((one for one in _remotes(repository) if name.startswith(f"{one}/")), name.partition("/")[0])
    short = name.removeprefix(f"{remote}/")
    following = tuple(branch for branch, upstream in upstreams.items() if upstream == ref)
    if following and short not in following:
        return following
    return (short,) if short in upstreams else ()


def _upstreams(repository: Repository) -> dict[str, str]:
    """Every local branch and its upstream, "" if it has none."""
    output = run_git(repository.root, "for-each-ref", "--format=%(refname)%09%(upstream)", "refs/heads")
    pairs = (line.partition("\t") for line in output.splitlines())
    return {name.removeprefix(_HEADS): upstream for name, _, upstream in pairs}


def _remotes(repository: Repository) -> list[str]:
    """Longest names first: a remote's name may contain a slash, and so begin with another's."""
    return sorted(run_git(repository.root, "remote").splitlines(), key=len, reverse=True)
