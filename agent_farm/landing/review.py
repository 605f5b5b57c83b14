"""Shows what is about to land to hooks, submodules, and the repository's own checks."""

from __future__ import annotations

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError
from agent_farm.farm.declared_checks import checks_of_merge
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Checkout
from agent_farm.git.entries import changes_between
from agent_farm.git.landing_hooks import Hooks
from agent_farm.git.merging import Review, Strategy
from agent_farm.landing.submodule_pointers import require_known_pointers
from agent_farm.landing.trial import Trial
from agent_farm.landing.verdicts import Tell, verdict_of
from agent_farm.landing.work import FoundWork, require_none_of_afs
from agent_farm.launch import as_command


class HookReview(Review):
    """Runs the repository's hooks in a clean worktree of their own; `notes` gets what they print."""

    def __init__(self, farm: Farm, checkout: Checkout, hooks: Hooks, notes: list[str]) -> None:
        self.farm, self.checkout, self.hooks, self.notes = farm, checkout, hooks, notes
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
                "The commit message is empty", why="The repository's hooks removed all of it."
            )
        return text


class LandingReview(HookReview):
    """Shows what is about to land to hooks, submodules and checks."""

    def __init__(
        self,
        farm: Farm,
        checkout: Checkout,
        record: BuilderRecord,
        found: FoundWork,
        hooks: Hooks,
        notes: list[str],
        tell: Tell | None = None,
    ) -> None:
        super().__init__(farm, checkout, hooks, notes)
        self.record, self.found, self.tell = record, found, tell

    def commit(self, before: str, after: str) -> None:
        require_none_of_afs(self.record, changes_between(self.checkout, before, after))
        require_known_pointers(self.farm, self.checkout, self.record, before, after)
        self._check(after)

    def _check(self, commit: str) -> None:
        """A green result for the same tree is reused; after a red one the check runs again, as the machine
        may have been at fault."""
        checks = checks_of_merge(self.farm)
        if not checks:
            return
        verdict = verdict_of(self.farm, commit, checks, reuse="green", tell=self.tell)
        if (red := verdict.failed) is not None:
            into = self.checkout.head().branch
            raise AgentFarmError(
                f"{red.called.replace('the', 'The', 1)} {red.told} for {self.record.id}",
                why=f"Nothing was merged. It ran on {self.found.work.name} merged into {into}: {red.command}",
                evidence=red.changed,
                hint=as_command(
                    "af", "send", self.record.id, f"Merge {into} and make this pass: {red.command}"
                ),
            )
