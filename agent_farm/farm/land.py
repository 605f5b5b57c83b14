"""`af merge`: bring what builders have made into the branch where the person stands, or change nothing."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from pathlib import Path
from typing import cast

from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import Ask, require_consent
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.farm.landing_place import landing_place, require_base
from agent_farm.farm.landing_work import FoundWork, find_work, require_none_of_afs
from agent_farm.farm.listing import read_status
from agent_farm.farm.locks import Tell, hold, landing_lock
from agent_farm.farm.own_events import note
from agent_farm.farm.submodule_pointers import require_known_pointers
from agent_farm.farm.trial import Trial
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import changes_between
from agent_farm.git.landing_hooks import HookRefused, Hooks, find_hooks
from agent_farm.git.merging import (
    MergeConflicts,
    Merged,
    NoFastForward,
    Review,
    Strategy,
    merge_commit,
)
from agent_farm.git.settling import settle_interrupted
from agent_farm.launch import as_command
from agent_farm.runtimes.environment import allowed_environment
from agent_farm.shield import Shield

_NAMED = 5  # files that a message to a builder names


@dataclass(frozen=True, slots=True)
class MergeRequest:
    """`here`: whatever the base is; `yes` and `ask` are for the consent to merge.check.

    `tell` gets a word for the person who has to wait.
    """

    strategy: str | None = None
    message: str | None = None
    here: bool = False
    yes: bool = False
    ask: Ask | None = None
    tell: Tell | None = None


@dataclass(frozen=True, slots=True)
class Landed:
    """`branch` is what its worktree had checked out, None when detached; `switched`: it is not the builder's.

    `left_behind` are files that are not committed, and so did not land; `notes` is what hooks said, and what
    was settled before.
    """

    id: str
    checkout: Path
    branch: str | None
    switched: bool
    merged: Merged
    left_behind: tuple[str, ...]
    notes: tuple[str, ...] = ()


def land(farm: Farm, record: BuilderRecord, request: MergeRequest, shield: Shield | None = None) -> Landed:
    """Bring what the builder's worktree has checked out into the branch of a checkout, or change nothing."""
    settings = farm.settings
    settings.require_good()
    if settings.values["merge.check"] is not None:
        wanted = settings.requests(("merge.check", "env.pass"))
        require_consent(farm.root, wanted, yes=request.yes, ask=request.ask)
    checkout = landing_place(farm)
    hooks = find_hooks(checkout, never_below=farm.paths.worktrees)
    notes: list[str] = []
    try:
        landed = _landed(farm, checkout, hooks, record, request, shield, notes)
        if landed.merged.before != landed.merged.after:
            notes += _run_afterwards(farm, hooks, request)
    except AgentFarmError as error:
        error.evidence = (*error.evidence, *notes)
        raise
    return replace(landed, notes=tuple(notes))


def _landed(
    farm: Farm,
    checkout: Checkout,
    hooks: Hooks,
    record: BuilderRecord,
    request: MergeRequest,
    shield: Shield | None,
    notes: list[str],
) -> Landed:
    with ExitStack() as stack:
        lock = stack.enter_context(landing_lock(farm, checkout, tell=request.tell))
        record = stack.enter_context(hold(farm, record.id))
        if settled := settle_interrupted(checkout):
            notes.append(f"A merge was cut short before: {settled.told}")
        head = checkout.head()
        require_base(farm, record, checkout, head, here=request.here)
        found = find_work(farm, record)
        chosen = _strategy(farm, request)
        review = _Review(farm, checkout, record, found, hooks, notes)
        stack.callback(review.trial.close)
        try:
            merged = merge_commit(
                farm.repository,
                checkout,
                found.work,
                chosen,
                request.message,
                head=head,
                signed=hooks.signs,
                review=review,
                hooks=hooks.directory,
                fds=[lock],
                shield=shield,
            )
        except MergeConflicts as error:
            error.hint = _resolving(farm, record, checkout, chosen, error.evidence)
            raise
        except NoFastForward as error:
            error.hint = as_command("af", "merge", "--strategy", "merge", record.id)
            raise
        note(farm, record, "merged", f"into {merged.into}, now {merged.after[:12]}")
        switched = found.branch != record.branch
        return Landed(record.id, checkout.path, found.branch, switched, merged, found.left_behind)


class _Review(Review):
    """Hooks, submodules and merge.check look at what is about to land, in a clean worktree of its own."""

    def __init__(
        self,
        farm: Farm,
        checkout: Checkout,
        record: BuilderRecord,
        found: FoundWork,
        hooks: Hooks,
        notes: list[str],
    ) -> None:
        self.farm, self.checkout, self.record, self.found = farm, checkout, record, found
        self.hooks, self.notes = hooks, notes
        self.trial = Trial(farm, farm.paths.trial(farm.paths.merge_lock(checkout.worktree_name).stem))

    def tree(self, head: str, tip: str, tree: str, strategy: Strategy) -> str:
        name = "pre-commit" if strategy == "squash" else "pre-merge-commit"
        if self.hooks.find(name) is None:
            return tree
        shown = self.trial.show(head, tree)
        if strategy == "merge":
            (shown.git_dir / "MERGE_HEAD").write_text(f"{tip}\n")
        self.notes += self.hooks.run(name, cwd=shown.path)
        (shown.git_dir / "MERGE_HEAD").unlink(missing_ok=True)
        return shown.run("write-tree").strip()

    def message(self, text: bytes, strategy: Strategy) -> bytes:
        if not any(map(self.hooks.find, ("prepare-commit-msg", "commit-msg"))):
            return text
        file = self.checkout.git_dir / "AGENT_FARM_MERGE_MSG"
        try:
            file.write_bytes(text)
            self.notes += self.hooks.run("prepare-commit-msg", str(file), strategy)
            self.notes += self.hooks.run("commit-msg", str(file))
            text = file.read_bytes()
        finally:
            file.unlink(missing_ok=True)
        text = text.strip() + b"\n"
        if text == b"\n":
            raise AgentFarmError(
                "The commit message is empty", why="The repository's hooks left nothing of it."
            )
        return text

    def commit(self, before: str, after: str) -> None:
        require_none_of_afs(self.record, changes_between(self.checkout, before, after))
        require_known_pointers(self.farm, self.checkout, self.record, before, after)
        command = self.farm.settings.text("merge.check")
        if command is not None:
            shown = self.trial.show(after, after)
            self._check(command, shown.path)

    def _check(self, command: str, where: Path) -> None:
        """Its output is the user's to see."""
        env = allowed_environment(os.environ, declared=self.farm.settings.items("env.pass"))
        done = subprocess.run(
            ["/bin/sh", "-c", command], cwd=where, env=env, stdin=subprocess.DEVNULL, stdout=2, check=False
        )
        if done.returncode:
            into = self.checkout.head().branch
            raise AgentFarmError(
                f"merge.check failed for {self.record.id} with exit code {done.returncode}",
                why=f"Nothing was merged. It ran on {self.found.work.name} merged into {into}: {command}",
                hint=as_command("af", "send", self.record.id, f"Merge {into} and make this pass: {command}"),
            )


def _strategy(farm: Farm, request: MergeRequest) -> Strategy:
    return cast(Strategy, request.strategy or farm.settings.text("merge.strategy"))


def _run_afterwards(farm: Farm, hooks: Hooks, request: MergeRequest) -> list[str]:
    """It has landed, whatever this hook says."""
    squash = _strategy(farm, request) == "squash"
    try:
        return hooks.run("post-merge", "1" if squash else "0")
    except HookRefused as error:
        return [error.what, *error.evidence]


def _resolving(
    farm: Farm, record: BuilderRecord, checkout: Checkout, strategy: Strategy, files: Sequence[str]
) -> str:
    """The command that has the builder resolve what stands against landing it; it is the one who knows."""
    branch = checkout.head().branch or record.base
    how = f"Rebase your branch onto {branch}" if strategy == "rebase" else f"Merge {branch} into your branch"
    names = [file for file in files if file.isprintable()][:_NAMED]
    more = [f"{len(files) - len(names)} more"] if len(files) > len(names) else []
    what = f"{how} and resolve the conflicts in {', '.join([*names, *more])}"
    send = as_command("af", "send", record.id, what)
    if read_status(farm, record).is_finished:
        return f"{as_command('af', 'resume', record.id)} && {send}"
    return send
