"""Runs each builder's new tests on the others' work."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from agent_farm.farm.declared_checks import Check
from agent_farm.farm.farm import Farm
from agent_farm.git.checkout import Checkout, checkout_at
from agent_farm.git.entries import Change, Entry, changes_between
from agent_farm.git.merge_trees import loose_commit
from agent_farm.git.snapshots import overlaid_tree
from agent_farm.landing.flags.languages import is_test
from agent_farm.landing.verdicts import Reuse, Tell, verdict_of


class Candidate(Struct, frozen=True):
    """Work that passes the checks on its own: `tree` is the commit that merges `tip` into `target`."""

    id: str
    tip: str
    target: str
    tree: str


class CrossTest(Struct, frozen=True):
    """What the checks say about the code of `on` with the new tests of `tests_of`."""

    tests_of: str
    on: str
    passed: bool
    told: str
    log: str


def cross_tests(
    farm: Farm, candidates: Sequence[Candidate], checks: Sequence[Check], *, reuse: Reuse, tell: Tell
) -> Iterator[CrossTest]:
    """The result for each pair, as soon as it is there; tests of a builder without new tests cannot be run.

    Each tree has the code of one builder and the tests of the target, and over those the tests that another
    builder added or changed. So its own tests say nothing there, and deleting a test helps nobody.
    """
    checkout = checkout_at(farm.repository, farm.root)
    changed = {one.id: _changed_tests(checkout, one) for one in candidates}
    for author in candidates:
        brought = {path: change.after for path, change in changed[author.id].items() if change.after}
        for one in candidates:
            if one is not author and brought:
                tell(f"Checking {one.id} with the tests of {author.id}")
                back = {path: change.before for path, change in changed[one.id].items()}
                files: Mapping[str, Entry | None] = {**back, **brought}
                tree = overlaid_tree(farm.repository, one.tree, files)
                commit = loose_commit(farm.repository, tree, one.target, one.tip)
                verdict = verdict_of(farm, commit, checks, reuse=reuse)
                last = verdict.failed or verdict.results[-1]
                told = f"the check {last.name} {last.told}"
                yield CrossTest(author.id, one.id, verdict.passed, told, str(last.log))


def new_tests(farm: Farm, one: Candidate) -> tuple[str, ...]:
    """The test files that it adds or changes."""
    changed = _changed_tests(checkout_at(farm.repository, farm.root), one)
    return tuple(path for path, change in changed.items() if change.after)


def _changed_tests(checkout: Checkout, one: Candidate) -> dict[str, Change]:
    changes = changes_between(checkout, one.target, one.tree)
    return {path: change for path, change in changes.items() if is_test(path) and not change.is_submodule}
