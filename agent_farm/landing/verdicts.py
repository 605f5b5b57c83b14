"""What checks say about a tree: run in a clean worktree, stored, and not asked again for the same tree."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Literal

from msgspec import Struct
from msgspec.structs import replace

from agent_farm.clock_jumps import ClockJumped, require_steady_clock
from agent_farm.digests import sha256
from agent_farm.disk import file_lock
from agent_farm.documents import load_if_whole, store
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import BuilderTree
from agent_farm.git.git_process import GitError, paths_of, run_git
from agent_farm.landing.check_run import run_check
from agent_farm.landing.trial import free_trial

MOST_KEPT = 400
KEPT_SECONDS = 30 * 86_400.0
_NAMED = 20  # of the files that a check changed

Tell = Callable[[str], None]
# Which stored results are as good as a new one: all, green ones only, or none.
Reuse = Literal["all", "green", "none"]


class CheckResult(Struct, frozen=True):
    """What one check said about a tree, when (`at`), and after how many `seconds`.

    `exit_code` is None if a signal or the time limit ended it. `changed` are tracked files that the check
    modified: then it did not see this tree. `unsteady`: it has said both green and red about this tree.
    """

    name: str
    command: str
    tree: str
    exit_code: int | None
    timed_out: bool
    changed: tuple[str, ...]
    at: float
    seconds: float
    log: Path
    signal: str | None = None
    unsteady: bool = False

    @property
    def passed(self) -> bool:
        return self.exit_code == 0 and not self.changed

    @property
    def called(self) -> str:
        return {"merge": "merge.check", "check": "the check"}.get(self.name, f"the check {self.name}")

    @property
    def told(self) -> str:
        """How it ended, to follow its name in a sentence."""
        if self.timed_out:
            return f"took longer than {self.seconds:.0f} s"
        if self.exit_code is None:
            return f"was ended by {self.signal or 'a signal'}"
        if self.exit_code:
            return f"failed with exit code {self.exit_code}"
        return (
            f"changed {self.changed[0]}, so it did not see the tree that would land"
            if self.changed
            else "passed"
        )


class Verdict(Struct, frozen=True):
    """The results of the checks in order, up to the first red one; without any check nothing has passed."""

    tree: str
    results: tuple[CheckResult, ...]

    @property
    def passed(self) -> bool:
        return bool(self.results) and all(result.passed for result in self.results)

    @property
    def failed(self) -> CheckResult | None:
        return next((result for result in self.results if not result.passed), None)


def verdict_of(
    farm: Farm,
    commit: str,
    checks: Sequence[Check],
    *,
    reuse: Reuse = "all",
    run: str = "",
    tell: Tell | None = None,
) -> Verdict:
    """What the checks say about the tree of `commit`, which is HEAD in the worktree they run in.

    Raises ConsentNeeded before anything runs. `run` is the start of the builder whose status says so while
    they wait. `tell` gets the checks' output, line by line.
    """
    for check in checks:
        farm.settings.text(check.setting)
    tree = run_git(farm.root, "rev-parse", "--verify", f"{commit}^{{tree}}").strip()
    results: list[CheckResult] = []
    for check in checks:
        results.append(_result(farm, commit, tree, check, reuse, run, tell))
        if not results[-1].passed:
            break
    _expire(farm)
    return Verdict(tree, tuple(results))


def kept_verdict(farm: Farm, tree: str, checks: Sequence[Check]) -> Verdict | None:
    """The verdict from stored results, without running anything; None if a result is missing."""
    results: list[CheckResult] = []
    for check in checks:
        result = _kept(_file(farm, tree, check))
        if result is None:
            return None
        results.append(result)
        if not result.passed:
            break
    return Verdict(tree, tuple(results)) if results else None


def _result(
    farm: Farm, commit: str, tree: str, check: Check, reuse: Reuse, run: str, tell: Tell | None
) -> CheckResult:
    file, asked = _file(farm, tree, check), time.time()
    with _alone(file):  # whoever comes second takes the first one's result
        kept = _kept(file)
        if kept is not None and (reuse == "all" or (reuse == "green" and kept.passed) or kept.at > asked):
            return kept
        found = _run(farm, commit, tree, check, file.with_suffix(".log"), run, tell)
        if kept is not None and (kept.unsteady or kept.passed != found.passed):
            found = replace(found, unsteady=True)
        store(file, found)
    return found


@contextmanager
def _alone(file: Path) -> Iterator[None]:
    lock = file.with_suffix(".lock")
    with file_lock(lock):
        try:
            yield
        finally:
            lock.unlink(missing_ok=True)


def _run(
    farm: Farm, commit: str, tree: str, check: Check, log: Path, run: str, tell: Tell | None
) -> CheckResult:
    with free_trial(farm) as (trial, held):
        shown = trial.show(commit, tree)
        at, began = time.time(), time.monotonic()
        ended = run_check(farm, check, shown.path, log, held=held, run=run, tell=tell)
        seconds = time.monotonic() - began
        if ended.cannot_start:
            raise AgentFarmError(f"The check {check.name} cannot be started", why=ended.cannot_start)
        return CheckResult(
            name=check.name,
            command=check.command,
            tree=tree,
            exit_code=None if ended.timed_out else ended.exit_code,
            timed_out=ended.timed_out,
            changed=_changed(shown, tree),
            at=at,
            seconds=round(seconds, 3),
            log=log,
            signal=ended.signal,
        )


def _changed(shown: BuilderTree, tree: str) -> tuple[str, ...]:
    """Tracked files that differ from the tree, whatever the check committed."""
    try:
        shown.ask("update-index", "-q", "--refresh")
        return tuple(paths_of(shown.run("diff-index", "--name-only", "-z", tree, "--"))[:_NAMED])
    except GitError:  # whatever a check does to its worktree counts against it, and must not stop us
        return ("its whole worktree",)


def _file(farm: Farm, tree: str, check: Check) -> Path:
    names = ",".join(sorted(farm.settings.agreed("env.pass")))
    key = sha256("\0".join((tree, check.command, names)).encode("utf-8", "surrogateescape"))
    return farm.paths.checks / f"{key.hexdigest()[:32]}.json"


def _kept(file: Path) -> CheckResult | None:
    """The log's path is computed anew, because a farm may be moved."""
    kept = load_if_whole(file, CheckResult)
    return kept and replace(kept, log=file.with_suffix(".log"))


def _expire(farm: Farm) -> None:
    """Keeps the newest for a while; nothing of a check that is running is removed."""
    files: dict[str, list[Path]] = {}
    for file in farm.paths.checks.glob("*.*"):
        files.setdefault(file.stem, []).append(file)
    ages = {stem: max(map(_changed_at, some)) for stem, some in files.items()}
    oldest = time.time() - KEPT_SECONDS
    try:
        require_steady_clock(farm.paths, asked=False)
    except ClockJumped:
        oldest = 0.0
    for number, stem in enumerate(sorted(ages, key=lambda stem: -ages[stem])):
        if number < MOST_KEPT and ages[stem] > oldest:
            continue
        with suppress(LockTaken), file_lock(farm.paths.checks / f"{stem}.lock", wait=0):
            for suffix in ("json", "log", "lock"):
                (farm.paths.checks / f"{stem}.{suffix}").unlink(missing_ok=True)


def _changed_at(file: Path) -> float:
    try:
        return file.stat().st_mtime
    except FileNotFoundError:
        return 0.0
