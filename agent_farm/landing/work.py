"""What a builder has made: the commits in its worktree, which `af diff` shows."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, NotFound, OtherWork
from agent_farm.farm.farm import Farm
from agent_farm.git.changes import tree_state
from agent_farm.git.checkout import BuilderTree, Head
from agent_farm.git.git_process import GitError, run_git
from agent_farm.git.merging import Work
from agent_farm.launch import as_command
from agent_farm.paths import STATE_NAME, WORKTREES_NAME

_LISTED = 10
_SUBJECT = 72


class FoundWork(Struct, frozen=True):
    """`branch` is None when HEAD is detached; `left_behind` lists uncommitted files."""

    work: Work
    branch: str | None
    left_behind: tuple[str, ...]


def find_work(farm: Farm, record: BuilderRecord) -> FoundWork:
    """OtherWork if landing what is checked out would leave commits of the builder's own branch behind."""
    record.require_begun()
    tree = farm.tree_if_there(record)
    if tree is None:
        own = farm.repository.branch_commit(record.branch)
        if own is None:
            raise NotFound(
                f"There is no branch {record.branch}", why="Its worktree is gone, too.", hint="af doctor"
            )
        return FoundWork(_work(farm, record, own, record.branch), record.branch, ())
    state = tree_state(tree)
    if state.head is None:
        raise NotFound(
            f"{record.id} has {state.branch} checked out, which has no commit",
            hint=as_command("git", "-C", tree.path, "switch", record.branch),
        )
    head = Head(state.head, state.branch)
    if head.branch != record.branch:
        _require_whole(farm, record, tree, head, farm.repository.branch_commit(record.branch))
        if state.operation in ("rebase", "am", "bisect"):
            raise OtherWork(
                f"A {state.operation} is under way in the worktree of {record.id}",
                why="The checkout there is not all of its work.",
                hint=as_command("git", "-C", tree.path, "status"),
            )
    name = head.branch or f"the detached HEAD of {record.id}"
    return FoundWork(_work(farm, record, head.commit, name), head.branch, (*state.dirty, *state.untracked))


def _require_whole(farm: Farm, record: BuilderRecord, tree: BuilderTree, head: Head, own: str | None) -> None:
    """Raise unless what is checked out contains the whole branch of the builder."""
    if own is None:
        return
    left = _commits(farm, own, head.commit)
    if not left:
        return
    what = head.branch or f"{head.commit[:10]}, on no branch,"
    behind = not _commits(farm, head.commit, own)
    bring = ("switch", record.branch) if behind else ("merge", "--no-edit", record.branch)
    many = "1 commit" if len(left) == 1 else f"{len(left)} commits"
    raise OtherWork(
        f"{record.id} has {what} checked out, and {record.branch} holds {many} that are not in it",
        why="Nothing was merged: af diff shows, and af merge lands, what is checked out.",
        evidence=left[:_LISTED] + ([f"… {len(left) - _LISTED} more"] if len(left) > _LISTED else []),
        hint=f"{as_command('git', '-C', tree.path, *bring)} && {as_command('af', 'merge', record.id)}",
    )


def _commits(farm: Farm, of: str, without: str) -> list[str]:
    return run_git(farm.root, "log", "--no-decorate", "--format=%h %s", of, f"^{without}", "--").splitlines()


def _work(farm: Farm, record: BuilderRecord, tip: str, name: str) -> Work:
    return Work(tip, name, _subject(farm, record, tip, name), f"Builder: {record.id}")


def require_none_of_afs(record: BuilderRecord, changed: Iterable[str]) -> None:
    """Once git tracks these, every `af` refuses the repository, so work that contains them does not land."""
    names = {path.partition("/")[0] for path in changed}
    tracked = sorted(name for name in names if name.lower() in (STATE_NAME, WORKTREES_NAME))
    if tracked:
        raise AgentFarmError(
            f"{record.id} has committed {' and '.join(tracked)}",
            why="These belong to af, which refuses a repository that contains them.",
            hint=as_command("git", "-C", record.worktree_path, "rm", "-r", "--cached", *tracked),
        )


def _subject(farm: Farm, record: BuilderRecord, tip: str, name: str) -> str:
    """The first line of the task, or the spec's title; if too long for a log, the whole text follows."""
    text = record.task_text or (_spec_title(farm, record.spec, tip) if record.spec else None)
    text = text or record.protocol_name
    lines = [" ".join(line.split()) for line in (text or "").splitlines() if line.strip()]
    if not lines:
        return f"Merge {name}"
    line = "".join(char for char in lines[0] if char.isprintable())
    if len(line) <= _SUBJECT:
        return line
    short = line[: _SUBJECT - 1].rsplit(" ", 1)[0] or line[: _SUBJECT - 1]
    return f"{short}…\n\n{line}"


def _spec_title(farm: Farm, path: str, commit: str) -> str:
    try:
        text = farm.repository.read_blob(commit, path).decode("utf-8", "replace")
    except (NotFound, GitError):
        text = ""
    titles = (line.lstrip("#").strip() for line in text.splitlines() if line.startswith("# "))
    return next(filter(None, titles), path.rpartition("/")[2].removesuffix(".md"))
