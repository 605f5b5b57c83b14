"""What changed since it was read: all of it is shown, in any second round, and little else."""

from __future__ import annotations

import random
import subprocess
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_farm.git.repository import Repository, find_repository
from agent_farm.review.diff_as_read import FileRead, files_read, only_unread
from agent_farm.review.kept import Comment, KeptReview, Marks, Round
from agent_farm.review.marking import marked
from agent_farm.review.rounds import compared
from tests.gitrepo import git

ROUNDS = 200
# few words, so that many lines are alike
WORDS = ("return x", "x = 1", "", "}", "if x:", "    y(x)", "    pass", "else:", "call(x)", "# note", "z = y")
Files = dict[str, list[str]]


@dataclass(frozen=True)
class Case:
    """Files at the start and the tip of two rounds; `known` is the first tip moved onto the second start."""

    start: Files
    tip: Files
    new_start: Files
    new_tip: Files
    known: Files


def cases() -> Iterator[Case]:
    for seed in range(ROUNDS):
        yield case(random.Random(seed))


def case(draw: random.Random) -> Case:
    """Parts that others change alternate with parts that the builder changes, twice."""
    names = [f"f{number}.py" for number in range(draw.randint(1, 3))]
    theirs = {name: [lines(draw) for _ in range(4)] for name in names}
    own = {name: [lines(draw) for _ in range(3)] for name in names}
    moved = {name: [edited(draw, part, 0.3) for part in parts] for name, parts in theirs.items()}
    base = draw.random() < 0.5
    once = {name: [edited(draw, part, 0.8, 40) for part in parts] for name, parts in own.items()}
    (how,) = draw.choices((reworked, reformatted, swapped, undone, as_before), (8, 2, 1, 1, 2))
    twice = {name: how(draw, once[name], own[name]) for name in names}
    there = moved if base else theirs
    return Case(
        woven(theirs, own), woven(theirs, once), woven(there, own), woven(there, twice), woven(there, once)
    )


def lines(draw: random.Random) -> list[str]:
    return [draw.choice(WORDS) for _ in range(draw.randint(4, 15))]


def edited(draw: random.Random, part: list[str], chance: float, most: int = 5) -> list[str]:
    if draw.random() > chance:
        return part
    at = draw.randint(0, len(part))
    new = [draw.choice((*WORDS, f"value = {draw.randint(0, 99)}")) for _ in range(draw.randint(0, most))]
    return part[:at] + new + part[at + draw.randint(0, 3) :]


def reworked(draw: random.Random, once: list[list[str]], own: list[list[str]]) -> list[list[str]]:
    return [edited(draw, part, 0.4) for part in once]


def reformatted(draw: random.Random, once: list[list[str]], own: list[list[str]]) -> list[list[str]]:
    at = draw.randrange(len(once))
    return [[f"  {line}" for line in part] if at == place else part for place, part in enumerate(once)]


def swapped(draw: random.Random, once: list[list[str]], own: list[list[str]]) -> list[list[str]]:
    """The same lines in another place."""
    return [once[1], once[0], once[2]]


def undone(draw: random.Random, once: list[list[str]], own: list[list[str]]) -> list[list[str]]:
    at = draw.randrange(len(once))
    return [own[at] if at == place else part for place, part in enumerate(once)]


def as_before(draw: random.Random, once: list[list[str]], own: list[list[str]]) -> list[list[str]]:
    return once


def woven(theirs: dict[str, list[list[str]]], own: dict[str, list[list[str]]]) -> Files:
    found = {}
    for name in theirs:
        parts = [theirs[name][0]]
        for mine, other in zip(own[name], theirs[name][1:], strict=True):
            parts += [[f"# {name}: mine"], mine, ["# theirs"], other]
        found[name] = [line for part in parts for line in part]
    return found


def commits_of(repository: Path, trees: Sequence[Files]) -> list[str]:
    """One commit for each, made by one process."""
    stream = bytearray()
    for number, files in enumerate(trees, 1):
        stream += b"commit refs/heads/c%d\nmark :%d\n" % (number, number)
        stream += b"committer T <t@example.invalid> 1700000000 +0000\ndata 1\nx\ndeleteall\n"
        for name, content in files.items():
            data = "".join(f"{line}\n" for line in content).encode()
            stream += b"M 100644 inline %s\ndata %d\n%s\n" % (name.encode(), len(data), data)
    subprocess.run(["git", "fast-import", "--quiet"], cwd=repository, input=bytes(stream), check=True)
    names = [f"c{number}" for number in range(1, len(trees) + 1)]
    return git(repository, "rev-parse", *names).split()


@dataclass(frozen=True)
class Read:
    case: Case
    whole: tuple[FileRead, ...]
    narrow: tuple[FileRead, ...]
    comments: tuple[Comment, ...]
    commented: tuple[Comment, ...]


@pytest.fixture(scope="module")
def second_rounds(tmp_path_factory: pytest.TempPathFactory) -> list[Read]:
    """All of the first round was read, and each changed line commented on."""
    place = tmp_path_factory.mktemp("rounds")
    git(place, "init", "-q")
    given = list(cases())
    trees = [files for one in given for files in (one.start, one.tip, one.new_start, one.new_tip)]
    commits = commits_of(place, trees)
    repository = find_repository(place)
    first = {str(at): Round(*commits[4 * at : 4 * at + 2]) for at in range(len(given))}
    second = {str(at): Round(*commits[4 * at + 2 : 4 * at + 4]) for at in range(len(given))}
    kept = {id: read_whole(repository, id, one) for id, one in first.items()}
    files, steps = compared(repository, second, kept)
    found = []
    for id in second:
        before = kept[id]
        assert before.marks is not None
        step = steps.get(id)
        marks = step.marks(before.marks) if step else before.marks
        comments = tuple(map(step.comment, before.comments)) if step else before.comments
        whole = files_read(files[id], marks)
        found.append(Read(given[int(id)], whole, only_unread(whole), comments, before.comments))
    return found


def read_whole(repository: Repository, id: str, one: Round) -> KeptReview:
    files, _ = compared(repository, {id: one}, {id: KeptReview()})
    shown = files_read(files[id], Marks(one))
    comments = [
        Comment(0, "?", file.path, "new", line.new, line.new, (line.text,))
        for file in shown
        for hunk in file.hunks
        for line in hunk.lines
        if line.sign == "+" and line.new
    ]
    return KeptReview(marked(files[id], shown, Marks(one)), tuple(comments))


@pytest.mark.slow
def test_nothing_that_changed_is_hidden(second_rounds: list[Read]) -> None:
    """Without what is shown as new, the new tip is the old one with lines left out, and these are shown."""
    for read in second_rounds:
        shown = {file.path: file for file in read.narrow}
        for name, now in read.case.new_tip.items():
            hunks = shown[name].hunks if name in shown else ()
            lines = [line for hunk in hunks for line in hunk.lines if line.unread]
            new = {line.new for line in lines if (line.sign == "+") != line.gone}
            less = Counter(line.text for line in lines if (line.sign == "-") != line.gone)
            before = read.case.known[name]
            assert is_within([text for number, text in enumerate(now, 1) if number not in new], before)
            assert Counter(before) - Counter(now) <= less


def is_within(some: Sequence[str], whole: Sequence[str]) -> bool:
    rest = iter(whole)
    return all(line in rest for line in some)


@pytest.mark.slow
def test_what_was_read_is_not_shown_again(second_rounds: list[Read]) -> None:
    raw = sum(len(hunk.lines) for read in second_rounds for file in read.whole for hunk in file.hunks)
    shown = sum(len(hunk.lines) for read in second_rounds for file in read.narrow for hunk in file.hunks)
    assert shown <= 0.4 * raw
    same = [read for read in second_rounds if read.case.known == read.case.new_tip]
    assert len(same) > 10
    assert all(read.narrow == () for read in same)


@pytest.mark.slow
def test_a_comment_is_at_its_line_or_says_that_it_is_not(second_rounds: list[Read]) -> None:
    fates = set()
    for read in second_rounds:
        for before, now in zip(read.commented, read.comments, strict=True):
            fates.add(now.fate)
            if now.fate == "open":
                assert read.case.new_tip[now.path][now.first - 1] == before.quoted[0]
    assert fates == {"open", "answered"}
