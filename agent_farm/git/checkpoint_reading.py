"""Reads checkpoints that another machine made, and checks them: any number with the same few git processes.

Nothing in them is trusted: not names, modes or sizes, nor how many files there are and how deep they lie.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from typing import Any

from msgspec import Struct

from agent_farm.errors import AgentFarmError
from agent_farm.git.bounded import TooLong, run_git_bounded
from agent_farm.git.checkpoint_making import INDEX, WORK
from agent_farm.git.git_process import GitError, run_git, run_git_bytes
from agent_farm.git.repository import Repository
from agent_farm.git.unpacked import MOST_TOLD, new_blobs
from agent_farm.paths import is_below

_ABOUT = "about.json"
_FILE, _TREE = "100644", "40000"
_MOST_FILES = 20_000
_MOST_ABOUT = 1_000_000
_DEEPEST = 16


class Checkpoint(Struct, frozen=True):
    """`files` are the files about the worktree: path, then blob and size. `about` is about.json's content."""

    commit: str
    parents: tuple[str, ...]
    work: str
    index: str | None
    files: Mapping[str, tuple[str, int]]
    about: bytes


class NoCheckpoint(AgentFarmError):
    """The commit is not a checkpoint, or not one that can be trusted."""

    code = "checkpoint"


class _Object(Struct, frozen=True):
    """An object in git; `content` is empty unless it was asked for."""

    kind: str
    name: str
    size: int
    content: bytes = b""


# What reading one checkpoint yields: the function below that answers its next question, and the question.
_Asks = tuple[Callable[[Repository, Sequence[Any]], Sequence[Any]], Sequence[Any]]
_Reading = Generator[_Asks, Sequence[Any], Checkpoint]


def read_checkpoint(repository: Repository, ref: str, *, most_bytes: int) -> Checkpoint:
    """The checkpoint at `ref`; NoCheckpoint if it has another form or is larger than `most_bytes`."""
    found = read_checkpoints(repository, [ref], most_bytes=most_bytes)[ref]
    if isinstance(found, NoCheckpoint):
        raise found
    return found


def read_checkpoints(
    repository: Repository, refs: Collection[str], *, most_bytes: int
) -> dict[str, Checkpoint | NoCheckpoint]:
    """The checkpoint at each ref, or why there is none; one that git cannot read spoils no other."""
    try:
        return _in_step(repository, {ref: _reading(ref, most_bytes) for ref in refs})
    except (GitError, TooLong, ValueError) as error:
        if len(refs) == 1:
            return dict.fromkeys(refs, _none(error))
        alone = (read_checkpoints(repository, [ref], most_bytes=most_bytes) for ref in refs)
        return {ref: one for some in alone for ref, one in some.items()}


def read_file(repository: Repository, found: Checkpoint, path: str) -> bytes:
    """A file's content, whether it was stored whole or in parts; b"" if there is none."""
    parts = (
        [path] if path in found.files else sorted(name for name in found.files if name.startswith(f"{path}/"))
    )
    names = [found.files[part][0] for part in parts]
    if not names:
        return b""
    output = run_git_bytes(repository.root, "cat-file", "--batch", input=_lines(names))
    return b"".join(one.content for one in _objects(names, output) if one)


def read_everywhere(repository: Repository, refs: Collection[str], path: str) -> dict[str, bytes]:
    """A file that is stored in parts, of each checkpoint that was believed and has it: two gits for all."""
    if not refs:
        return {}
    trees = dict(zip(refs, _contents(repository, [f"{ref}:{path}" for ref in refs]), strict=True))
    parts = {ref: [blob for _, _, blob in _entries(tree)] for ref, tree in trees.items() if tree}
    blobs = iter(_contents(repository, [blob for some in parts.values() for blob in some]))
    return {ref: b"".join(one.content for _ in some if (one := next(blobs))) for ref, some in parts.items()}


def _none(error: Exception) -> NoCheckpoint:
    return NoCheckpoint("The fetched commit is not a checkpoint", why=str(error))


def _in_step(
    repository: Repository, readings: Mapping[str, _Reading]
) -> dict[str, Checkpoint | NoCheckpoint]:
    """Advance all readings together: the same kind of question is put to one git for all of them."""
    found = dict[str, Checkpoint | NoCheckpoint]()
    answers: dict[str, Sequence[Any] | None] = dict.fromkeys(readings)
    while answers:
        asked = dict[str, _Asks]()
        for ref, answer in answers.items():
            try:
                asked[ref] = readings[ref].send(answer)  # type: ignore[arg-type]  # None begins it
            except StopIteration as end:
                found[ref] = end.value
            except ValueError as error:
                found[ref] = _none(error)
        answers = {}
        for ask in {ask for ask, _ in asked.values()}:
            some = {ref: items for ref, (own, items) in asked.items() if own is ask}
            whole = iter(ask(repository, [item for items in some.values() for item in items]))
            answers |= {ref: [next(whole) for _ in items] for ref, items in some.items()}
    return found


def _reading(ref: str, most_bytes: int) -> _Reading:
    (commit,) = yield _contents, [ref]
    if commit is None or commit.kind != "commit":
        raise ValueError("It is no commit.")
    head = commit.content.decode("utf-8", "replace").partition("\n\n")[0].splitlines()
    parents = tuple(line.removeprefix("parent ") for line in head if line.startswith("parent "))
    if not 1 <= len(parents) <= 2:
        raise ValueError(f"It has {len(parents)} parents.")
    kept, blobs = yield from _walk(head[0].removeprefix("tree "))
    (begun,) = yield _facts, [f"{parents[0]}^{{tree}}"]
    changed = yield _differing, [(begun.name, tree) for tree in kept.values()]
    new = [blob for some in changed for blob in some]
    facts = yield _facts, [*blobs.values(), *new]
    if any(one is None or one.kind != "blob" for one in facts):
        raise ValueError("What it holds is not whole.")
    total, files = (
        sum(one.size for one in facts),
        {path: (blob, one.size) for (path, blob), one in zip(blobs.items(), facts, strict=False)},
    )
    if total > most_bytes or files[_ABOUT][1] > _MOST_ABOUT:
        raise ValueError(f"It holds {len(files)} files and {total} bytes.")
    (about,) = yield _contents, [files[_ABOUT][0]]
    return Checkpoint(commit.name, parents, kept[WORK], kept.get(INDEX), files, about.content)


def _walk(
    top: str,
) -> Generator[_Asks, Sequence[Any], tuple[dict[str, str], dict[str, str]]]:
    """The trees of the worktree and its index, and the blobs of all other files, by path."""
    kept, blobs, trees = dict[str, str](), dict[str, str](), {"": top}
    for _ in range(_DEEPEST):
        found = yield _contents, list(trees.values())
        below = dict[str, str]()
        for place, tree in zip(trees, found, strict=True):
            for mode, name, object in _entries(tree):
                path = f"{place}{name}"
                if mode == _TREE and path in (WORK, INDEX):
                    kept[path] = object
                elif mode == _TREE and (place or path in ("run", "talk")):
                    below[f"{path}/"] = object
                elif mode == _FILE and (place or path == _ABOUT) and is_below(path):
                    blobs[path] = object
                else:
                    raise ValueError(f"It holds {path!r:.80}.")
        if len(blobs) + len(below) > _MOST_FILES:
            raise ValueError(f"It holds more than {_MOST_FILES} files.")
        trees = below
        if not trees:
            break
    else:
        raise ValueError(f"It is more than {_DEEPEST} deep.")
    if WORK not in kept or _ABOUT not in blobs:
        raise ValueError("It holds no worktree.")
    return kept, blobs


def _entries(tree: _Object | None) -> Iterator[tuple[str, str, str]]:
    if tree is None or tree.kind != "tree":
        raise ValueError("What it holds is not whole.")
    at, size, raw = 0, len(tree.name) // 2, tree.content
    while at < len(raw):
        end = raw.index(b"\0", at)
        mode, _, name = raw[at:end].partition(b" ")
        at = end + 1 + size
        yield mode.decode(), name.decode("utf-8", "surrogateescape"), raw[end + 1 : at].hex()


# what git is asked


def _contents(repository: Repository, names: Sequence[str]) -> list[_Object | None]:
    """Raises TooLong if, for example, a machine named one tree many times over."""
    output = run_git_bounded(
        repository.root, "cat-file", "--batch", most_bytes=MOST_TOLD, input=_lines(names)
    )
    return _objects(names, output)


def _lines(names: Sequence[str]) -> str:
    return "".join(f"{one}\n" for one in names)


def _objects(names: Sequence[str], output: bytes) -> list[_Object | None]:
    found, at = list[_Object | None](), 0
    for name in names:
        end = output.index(b"\n", at)
        one = _object(name, output[at:end].decode("utf-8", "surrogateescape"))
        at = end + 1
        if one is not None:
            one = _Object(one.kind, one.name, one.size, output[at : at + one.size])
            at += one.size + 1
        found.append(one)
    return found


def _facts(repository: Repository, names: Sequence[str]) -> list[_Object | None]:
    question = "".join(f"{one}\n" for one in names)
    rows = run_git(repository.root, "cat-file", "--batch-check", input=question).splitlines()
    return [_object(name, row) for name, row in zip(names, rows, strict=True)]


def _object(name: str, row: str) -> _Object | None:
    if row in (f"{name} missing", f"{name} ambiguous"):
        return None
    found, kind, size = row.split(" ")
    return _Object(kind, found, int(size))


def _differing(repository: Repository, pairs: Sequence[tuple[str, str]]) -> list[list[str]]:
    """For each pair of trees, the blobs of the second that the first does not have at the same path."""
    words = ("diff-tree", "--stdin", "-r", "-z", "--raw", "--no-renames", "--no-abbrev")
    question = "".join(f"{one} {other}\n" for one, other in pairs)
    output = run_git_bounded(repository.root, *words, most_bytes=MOST_TOLD, input=question)
    _, *found = new_blobs(output)
    if len(found) != len(pairs):
        raise ValueError("git has not compared all of them.")
    return found
