"""The review: how much of a second round a reader sees again, from real histories; and how soon.

Second rounds come from this repository, and from those that REVIEW_REPOSITORIES names: a few commits are the
first round, and with the next one the second, every other time on a base that took the first of them.
"""

from __future__ import annotations

import asyncio
import os
import random
import time
from collections.abc import Iterator
from concurrent.futures import Future
from pathlib import Path

from agent_farm.board.keyed_app import KeyedApp
from agent_farm.board.review_screen import ReviewScreen
from agent_farm.farm.farm import open_farm
from agent_farm.git.git_process import run_git
from agent_farm.git.repository import Repository, find_repository
from agent_farm.operations.operation import Context
from agent_farm.operations.review import Review, queue_and_first
from agent_farm.review.diff_as_read import FileRead, files_read, only_unread
from agent_farm.review.kept import KeptReview, Marks, Round
from agent_farm.review.marking import marked
from agent_farm.review.rounds import compared
from benchmarks.stage import AF, Rows, Stage, stage

ROUNDS = 200
RESULTS, CHANGED = 20, 400


def main() -> Rows:
    with stage() as made:  # in a process that has done nothing yet, as that of `af review`
        first, rest = screen(made)
    rows = [
        (f"{RESULTS} results of {CHANGED} lines: first paint", f"{first * 1000:.0f} ms"),
        ("the next result, median", f"{sorted(rest)[len(rest) // 2] * 1000:.0f} ms"),
        ("the next result, slowest", f"{max(rest) * 1000:.0f} ms"),
    ]
    named = os.environ.get("REVIEW_REPOSITORIES", "").split(os.pathsep)
    for place in [Path.cwd(), *map(Path, filter(None, named))]:
        raw, seen, hidden, count = second_rounds(find_repository(place))
        rows.append(
            (f"{place.name}: {count} second rounds", f"{seen / raw:.0%} of {raw} lines, {hidden} hidden")
        )
    return rows


def second_rounds(repository: Repository) -> tuple[int, int, int, int]:
    """Lines of all second rounds, those shown, files in which one is hidden, and how many rounds."""
    commits = run_git(repository.root, "rev-list", "--first-parent", "--max-count=3000", "HEAD").split()[::-1]
    draw = random.Random(1)
    raw = seen = hidden = count = 0
    while count < ROUNDS:
        size = draw.randint(2, 5)
        at = draw.randrange(len(commits) - size - 2)
        first = Round(commits[at], commits[at + size])
        second = Round(commits[at + count % 2], commits[at + size + 1])
        files, _ = compared(repository, {"": first}, {"": KeptReview()})
        marks = marked(files[""], files_read(files[""], Marks(first)), Marks(first))
        files, steps = compared(repository, {"": second}, {"": KeptReview(marks)})
        step = steps[""]
        assert step is not None
        whole = files_read(files[""], step.marks(marks))
        narrow = only_unread(whole)
        raw += sum(len(hunk.lines) for file in whole for hunk in file.hunks)
        seen += sum(len(hunk.lines) for file in narrow for hunk in file.hunks)
        hidden += sum(is_hidden(repository, first, second, file) for file in whole)
        count += 1
    return raw, seen, hidden, count


def is_hidden(repository: Repository, first: Round, second: Round, file: FileRead) -> bool:
    """Whether the new tip, without what is shown as new, is anything but the old one with lines left out."""
    lines_of = [line for hunk in file.hunks for line in hunk.lines]
    other_name = any(line.gone and line.text.startswith("(the file's name)") for line in lines_of)
    if file.binary or other_name or file.kind in ("deleted", "renamed"):
        return False
    before, now = (list(lines(repository, one.tip, file.path)) for one in (first, second))
    new = {line.new for line in lines_of if line.unread and line.new}
    rest = iter(before)
    return not all(line in rest for number, line in enumerate(now, 1) if number not in new)


def lines(repository: Repository, commit: str, path: str) -> Iterator[str]:
    text = run_git(repository.root, "show", f"{commit}:{path}", ok=(0, 128))
    return iter(text.removesuffix("\n").split("\n") if text else [])


def screen(made: Stage) -> tuple[float, list[float]]:
    for number in range(RESULTS):
        made.run(AF, "spawn", "--runtime", "demo", "--shell", "--name", f"b{number}")
        tree = made.repository / ".builders" / f"b{number}"
        for file in range(4):
            text = "".join(f"def function_{line}(): return {number}\n" for line in range(CHANGED // 4))
            (tree / f"code{file}.py").write_text(text)
        made.run("git", "-C", tree, "add", "-A")
        made.run("git", "-C", tree, "commit", "-q", "-m", "work")
    os.environ.update(made.env)
    return asyncio.run(paints(made.repository))


async def paints(root: Path) -> tuple[float, list[float]]:
    """From the moment that everything is imported."""
    begun = time.perf_counter()
    first: Future[object] = Future()

    def ask() -> None:
        first.set_result(queue_and_first(Context(open_farm(root)), Review()))

    asking = asyncio.get_running_loop().run_in_executor(None, ask)
    screen = ReviewScreen(root, root.name, first=first)  # type: ignore[arg-type]
    async with KeyedApp(screen).run_test(size=(120, 40)):
        await painted(screen, 0)
        took = time.perf_counter() - begun
        rest = []
        for place in range(1, RESULTS):
            await asyncio.sleep(1.0)  # a person reads
            begun = time.perf_counter()
            screen.action_press("n")
            await painted(screen, place)
            rest.append(time.perf_counter() - begun)
    await asking
    return took, rest


async def painted(screen: ReviewScreen, place: int) -> None:
    def there() -> bool:
        return bool(screen.shown and len(screen.items) > place and screen.shown.id == screen.items[place].id)

    while not there():  # noqa: ASYNC110 - the screen tells nobody
        await asyncio.sleep(0.001)
    drawn = asyncio.Event()
    screen.call_after_refresh(drawn.set)
    await drawn.wait()
