"""Reads from git, for all builders at once, what there is to review."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from msgspec import structs

from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import AgentFarmError, NotFound
from agent_farm.farm.farm import Farm
from agent_farm.git.asking import all_at_once
from agent_farm.git.checkout import CheckedOut
from agent_farm.git.divergence import resolve_trees
from agent_farm.git.patches import Patch, patches_of
from agent_farm.git.remotes import find_base
from agent_farm.git.repository import Repository
from agent_farm.git.showing import WorkRange, starts_of_work
from agent_farm.landing.flags.parsed_diff import FileChange, parse_diff
from agent_farm.review.kept import Comment, KeptReview, Marks, Round, load_kept
from agent_farm.review.line_map import TreeMap
from agent_farm.review.next_round import Step


@dataclass(frozen=True, slots=True)
class Result:
    """One builder's work. `marks` and `comments` are those in `kept`, translated to this round.

    `lost`: git no longer has what was read, so all of it counts as unread.
    """

    record: BuilderRecord
    round: Round
    branch: str | None
    files: tuple[FileChange, ...] = field(repr=False)
    kept: KeptReview = field(repr=False)
    marks: Marks = field(repr=False)
    comments: tuple[Comment, ...]
    lost: bool


@dataclass(frozen=True, slots=True)
class Trouble:
    """Why a builder's work cannot be reviewed."""

    record: BuilderRecord
    error: AgentFarmError


@dataclass(frozen=True, slots=True)
class Heads:
    """What each builder has checked out; `trouble` says why others cannot be reviewed."""

    records: Sequence[BuilderRecord]
    of: Mapping[str, CheckedOut]
    trouble: Mapping[str, AgentFarmError]


def heads_of(farm: Farm, records: Sequence[BuilderRecord]) -> Heads:
    """Read without a git process."""
    out: dict[str, CheckedOut] = {}
    trouble: dict[str, AgentFarmError] = {}
    for record in records:
        try:
            tree = farm.tree_if_there(record)
            out[record.id] = tree.checked_out() if tree else CheckedOut(record.branch, None)
        except AgentFarmError as error:
            trouble[record.id] = error
    return Heads(records, out, trouble)


def results_of(farm: Farm, heads: Heads, tip: str | None = None) -> list[Result | Trouble]:
    """What each builder has committed, up to `tip` if that is given."""
    kept: dict[str, KeptReview] = {}
    trouble = dict(heads.trouble)
    rounds, trees = _rounds(farm, heads, {id: tip or one.name for id, one in heads.of.items()}, trouble)
    for id in rounds:
        try:
            kept[id] = load_kept(farm.run(id).review)
        except AgentFarmError as error:  # the others can still be reviewed
            trouble[id] = error
    files, steps = compared(farm.repository, {id: rounds[id] for id in kept}, kept, trees)
    return [
        _result(record, heads.of[record.id], rounds[record.id], files[record.id], kept[record.id], steps)
        if record.id in kept
        else Trouble(record, trouble[record.id])
        for record in heads.records
    ]


def _rounds(
    farm: Farm, heads: Heads, names: Mapping[str, str], trouble: dict[str, AgentFarmError]
) -> tuple[dict[str, Round], dict[str, str]]:
    """The round of each, and the trees of commits found on the way."""
    records = [record for record in heads.records if record.id in names]
    begun = (record.base_commit for record in records)
    questions: dict[str | None, Callable[[], Any]] = {
        name: partial(find_base, farm.repository, name) for name in {one.base for one in records}
    }
    questions[None] = partial(resolve_trees, farm.repository, [*names.values(), *begun])
    answers = all_at_once(questions)
    known: dict[str, tuple[str, str]] = answers[None]
    asked: dict[str, WorkRange] = {}
    for record in records:
        first, tip = known.get(record.base_commit), known.get(names[record.id])
        if first and tip:
            asked[record.id] = WorkRange(first[0], tip[0], answers[record.base].refs)
        else:
            name = names[record.id] if first else record.base_commit
            trouble[record.id] = NotFound(f"{record.id} has no commit {name}", hint="af doctor")
    starts = starts_of_work(farm.repository, list(asked.values()))
    rounds = {id: Round(start, one.tip) for (id, one), start in zip(asked.items(), starts, strict=True)}
    return rounds, dict(known.values())


Steps = dict[str, Step | None]


def compared(
    repository: Repository,
    rounds: Mapping[str, Round],
    kept: Mapping[str, KeptReview],
    trees: Mapping[str, str] | None = None,
) -> tuple[dict[str, tuple[FileChange, ...]], Steps]:
    """What each round changes, and the step from the round that was read: None if git no longer has that.

    `trees` are those of commits that are known already.
    """
    before = {id: one.round for id, one in kept.items() if one.round and one.round != rounds[id]}
    trees = _with_trees_of(repository, trees or {}, [*rounds.values(), *before.values()])
    patches = patches_of(repository, [(trees[one.start], trees[one.tip]) for one in rounds.values()])
    files = {id: _files(patches[trees[one.start], trees[one.tip]]) for id, one in rounds.items()}
    pairs = {
        id: (
            (trees[one.start], trees[one.tip]),
            (trees[one.start], trees[rounds[id].start]),
            (trees[one.tip], trees[rounds[id].tip]),
        )
        for id, one in before.items()
        if one.start in trees and one.tip in trees
    }
    paths = {path for id in pairs for path in (*_paths(files[id]), *kept[id].paths)}
    maps = _maps(repository, [pair for some in pairs.values() for pair in some], paths)
    steps: Steps = dict.fromkeys(before)
    for id, some in pairs.items():
        first, starts, tips = (maps[pair] for pair in some)
        steps[id] = Step(rounds[id], first, starts, tips, files[id], _reader(repository, rounds[id].tip))
    return files, steps


def _with_trees_of(
    repository: Repository, known: Mapping[str, str], rounds: Sequence[Round]
) -> dict[str, str]:
    """The known trees, and those of the commits in `rounds`, as far as git still has them."""
    unknown = {commit for one in rounds for commit in (one.start, one.tip)} - known.keys()
    return {**known, **(dict(resolve_trees(repository, unknown).values()) if unknown else {})}


def _maps(
    repository: Repository, pairs: Sequence[tuple[str, str]], paths: Collection[str]
) -> dict[tuple[str, str], TreeMap]:
    patches = patches_of(repository, pairs, context=0, paths=sorted(paths)) if pairs else {}
    return {pair: TreeMap(patch.text, patch.large) for pair, patch in patches.items()}


def carried_marks(repository: Repository, marks: Marks | None, result: Result) -> Marks:
    """Marks from another round, translated to this one; none if git no longer has that round."""
    if marks is None or marks.round == result.round:
        return marks or Marks(result.round)
    _, steps = compared(repository, {"": result.round}, {"": KeptReview(marks)})
    step = steps[""]
    return step.marks(marks) if step else Marks(result.round)


def _reader(repository: Repository, tip: str) -> Callable[[str], Sequence[str]]:
    @cache
    def lines_of(path: str) -> Sequence[str]:
        return repository.read_blob(tip, path).decode("utf-8", "surrogateescape").split("\n")

    return lines_of


def _files(patch: Patch) -> tuple[FileChange, ...]:
    large = (FileChange(path, path, is_binary=True, head=(told,)) for path, told in patch.large.items())
    return (*parse_diff(patch.text), *large)


def _paths(files: Iterable[FileChange]) -> set[str]:
    return {path for file in files for path in (file.path, file.former)}


def _result(
    record: BuilderRecord,
    out: CheckedOut,
    now: Round,
    files: tuple[FileChange, ...],
    kept: KeptReview,
    steps: Mapping[str, Step | None],
) -> Result:
    marks, comments, lost = kept.marks, kept.comments, False
    if record.id in steps:
        step = steps[record.id]
        lost = step is None
        marks = step.marks(marks) if step and marks else None
        comments = tuple(step.comment(one) if step else _outdated(one) for one in comments)
    return Result(record, now, out.branch, files, kept, marks or Marks(now), comments, lost)


def _outdated(comment: Comment) -> Comment:
    return structs.replace(comment, fate="outdated") if comment.path else comment
