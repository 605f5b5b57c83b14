"""Farm: one repository with its builders, and everything that use cases need to work on it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.registry import Records, Registry
from agent_farm.errors import UsageError
from agent_farm.farm.home import settle_home
from agent_farm.git.checkout import BuilderTree, WorktreeMismatch, builder_tree
from agent_farm.git.repository import Repository, find_repository
from agent_farm.pace import Step
from agent_farm.paths import FarmPaths, RunPaths
from agent_farm.settings import Settings, open_settings
from agent_farm.tmux.server import TmuxServer


class Farm(Struct, frozen=True):
    repository: Repository
    paths: FarmPaths
    settings: Settings
    registry: Registry
    tell: Callable[[str], None] = lambda text: None
    step: Step = lambda what, done, total: None

    @property
    def root(self) -> Path:
        return self.repository.root

    @property
    def tmux(self) -> TmuxServer:
        return TmuxServer(self.settings.agreed("tmux.socket"))

    def run(self, builder_id: str) -> RunPaths:
        return self.paths.run_paths(builder_id)

    def is_half_made(self, record: BuilderRecord) -> bool:
        """Whether its start was cut short before `launch.json`, and so perhaps its checkout too."""
        return record.state == "failed" and not self.run(record.id).launch.exists()

    def tree(self, record: BuilderRecord) -> BuilderTree:
        """For running git in the builder's worktree; WorktreeMismatch if that is not what the record says."""
        return builder_tree(self.repository, record.id, record.worktree_path)

    def tree_if_there(self, record: BuilderRecord) -> BuilderTree | None:
        """`tree`, or None if the worktree is gone."""
        try:
            return self.tree(record)
        except WorktreeMismatch as error:
            if error.word == "no tree":
                return None
            raise

    def records(self) -> Records:
        """All records, after finishing or undoing what a killed `af` left half done."""
        records = self.registry.read()
        for error in records.unreadable.values():
            self.tell(f"{error.sentence}; run {error.hint}")
        if any(record.state == "creating" for record in records.values()):
            from agent_farm.farm.healing import settle_interrupted_starts

            settled = settle_interrupted_starts(self, records)
            for one in settled:
                self.tell(one.text)
            if settled:
                records = self.registry.read()
        if any(record.state == "queued" for record in records.values()):
            from agent_farm.farm.waiting import nudge

            nudge(self)
        return records

    def require(self, prefix: str) -> BuilderRecord:
        """The builder that an unambiguous prefix of its id means."""
        return self.records().match(prefix)

    def require_exact(self, id: str) -> BuilderRecord:
        """For what cannot be undone easily: requires the whole id."""
        records = self.records()
        if id in records:
            return records[id]
        meant = records.match(id)
        raise UsageError(
            f"{id} is not a whole builder id",
            why="Removing a builder needs its whole id.",
            hint=f"af prune {meant.id}",
        )


def open_farm(
    cwd: Path,
    tell: Callable[[str], None] = lambda text: None,
    *,
    was_moved: bool = False,
    step: Step = lambda what, done, total: None,
) -> Farm:
    """The farm of `cwd`, also from a linked worktree, and repaired if it was moved or copied.

    `tell` gets messages about repairs and about builders whose spawn was interrupted, `step` the progress of
    long work.
    """
    place = settle_home(find_repository(cwd), was_moved=was_moved)
    for text in place.told:
        tell(text)
    settings = open_settings(place.repository.root)
    return Farm(place.repository, place.paths, settings, Registry(place.paths), tell, step)
