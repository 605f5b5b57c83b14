"""The refs of fetched checkpoints: a new one waits beside the last until it has been checked."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Mapping
from contextlib import suppress
from itertools import count

from agent_farm.git.divergence import commit_at
from agent_farm.git.git_process import GitError, ask_git, run_git
from agent_farm.git.repository import Repository

_SET_ASIDE = re.compile(r"refs/agent-farm/fleet/([^@/]+)@([0-9]{1,12})(?:-fetched|-branch)?")
_FIRST_TIME = 1_000_000_000


def kept_ref(builder: str) -> str:
    """The ref of the last checkpoint that passed the check (no builder's id contains an @)."""
    return f"refs/agent-farm/fleet/{builder}@checkpoint"


def coming_ref(ref: str) -> str:
    """The ref of a checkpoint that was fetched to replace `ref`, and is not checked yet."""
    return f"{ref}-coming"


def left_ref(builder: str, term: int) -> str:
    """The ref of what a builder had on a machine before it was placed elsewhere."""
    return f"refs/agent-farm/fleet/{builder}@{term}"


def keep(repository: Repository, coming: Mapping[str, tuple[str, str]]) -> None:
    """Move checked checkpoints from their `coming` refs to the ref (and commit) given for each, in place of
    the last ones; all of them or none."""
    lines = (f"update {ref} {commit}\ndelete {come}\n" for come, (ref, commit) in coming.items())
    run_git(repository.root, "update-ref", "--stdin", input=f"start\n{''.join(lines)}commit\n")


def keep_newer(repository: Repository, builder: str, branch: str) -> list[str]:
    """Set aside commits fetched or made here that the builder's checkpoint does not contain, and return their
    refs: what names these commits now is about to be overwritten."""
    kept = list[str]()
    for name, ref in (("fetched", f"refs/agent-farm/fleet/{builder}"), ("branch", f"refs/heads/{branch}")):
        commit = commit_at(repository, ref)
        if commit is None or _is_in(repository, commit, kept_ref(builder)):
            continue
        if not any(_is_in(repository, commit, other) for other in kept):
            kept.append(_free_name(repository, builder, commit, f"-{name}"))
            run_git(repository.root, "update-ref", kept[-1], commit)
    return kept


def _free_name(repository: Repository, builder: str, commit: str, end: str = "") -> str:
    """An unused ref that ends in the time, by which it expires; a term never gets as high as a time."""
    names = (f"{left_ref(builder, number)}{end}" for number in count(int(time.time())))
    return next(name for name in names if commit_at(repository, name) in (None, commit))


def drop_set_aside(repository: Repository, limit: float) -> Iterator[tuple[str, int]]:
    """Drop what was set aside at `limit` or before; yields each builder and the time."""
    rows = run_git(
        repository.root, "for-each-ref", "--format=%(refname)", "refs/agent-farm/fleet"
    ).splitlines()
    for ref in rows:
        found = _SET_ASIDE.fullmatch(ref)
        if found is not None and _FIRST_TIME < int(found[2]) <= limit:
            drop(repository, ref)
            yield found[1], int(found[2])


def _is_in(repository: Repository, commit: str, ref: str) -> bool:
    status, _, _ = ask_git(repository.root, "merge-base", "--is-ancestor", commit, ref)
    return status == 0


def set_aside(repository: Repository, builder: str) -> str | None:
    """Move the last checkpoint to a ref of its own, because another builder may get this id."""
    commit = commit_at(repository, kept_ref(builder))
    if commit is None:
        return None
    ref = _free_name(repository, builder, commit)
    keep(repository, {kept_ref(builder): (ref, commit)})
    return ref


def drop(repository: Repository, *refs: str) -> None:
    for ref in refs:
        with suppress(GitError):
            run_git(repository.root, "update-ref", "-d", ref)
