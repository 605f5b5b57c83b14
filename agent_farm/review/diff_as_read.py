"""A builder's diff for a reader: its hunks, what is new since they were read, what can be folded."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Annotated, Literal

from msgspec import Meta, Struct, structs

from agent_farm.digests import sha256
from agent_farm.landing.flags.of_files import is_made
from agent_farm.landing.flags.parsed_diff import FileChange, Hunk
from agent_farm.review.kept import Gone, Marks, lines_in, runs
from agent_farm.review.moved import moved_lines, only_spaces
from agent_farm.review.next_round import head_of, key_of
from agent_farm.review.word_marks import word_marks

_AROUND = 2
_LONGEST = 2000  # characters of a line that are shown


class LineRead(Struct, frozen=True, omit_defaults=True):
    """`old` and `new` are its line numbers before and after the change."""

    sign: Annotated[Literal["+", "-", " ", "…"], Meta(description="…: lines left out; `text` says how many")]
    text: str
    old: int | None = None
    new: int | None = None
    read: Annotated[bool, Meta(description="It was read and has not changed since")] = False
    gone: Annotated[
        bool,
        Meta(
            description="A change that was read and is gone: + was taken out again, or is in its base if it"
            " has a number; - was put back"
        ),
    ] = False
    moved: Annotated[str, Meta(description="Where the same lines were before, or are now")] = ""
    space: Annotated[bool, Meta(description="Only white space differs")] = False
    tokens: Annotated[
        tuple[tuple[int, int, str], ...], Meta(description="Parts of code: where each is, and its kind")
    ] = ()
    marks: Annotated[
        tuple[tuple[int, int], ...], Meta(description="Characters that differ from the line's counterpart")
    ] = ()

    @property
    def fate(self) -> str:
        """What became of a change that is no longer one."""
        return "back in" if self.sign == "-" else "in its base" if self.new else "out again"

    @property
    def unread(self) -> bool:
        return self.gone or (self.sign in "+-" and not self.read)


class HunkRead(Struct, frozen=True):
    """`id` stays the same as long as its lines do, wherever they are."""

    id: str
    heading: str
    unread: Annotated[int, Meta(description="Number of changed lines not read yet")]
    lines: tuple[LineRead, ...]

    @property
    def first(self) -> str:
        """The number of its first line."""
        return next((str(line.new or line.old) for line in self.lines if line.new or line.old), "")


class FileRead(Struct, frozen=True):
    """`head` is what there is to read besides lines: a mode, a former name, a binary or large file."""

    path: str
    former: str
    kind: Literal["changed", "new", "deleted", "renamed"]
    head: str
    head_read: bool
    binary: bool
    generated: bool
    added: int
    removed: int
    unread: int
    hunks: tuple[HunkRead, ...]


def files_read(files: Sequence[FileChange], marks: Marks) -> tuple[FileRead, ...]:
    """All files, including one whose changes were read and have all gone again."""
    moved = moved_lines(files)
    left = list(marks.gone)
    found = []
    for file in files:
        mine = sorted((one for one in left if one.path == file.path), key=lambda one: one.line)
        left = [one for one in left if one.path != file.path]
        found.append(_file(file, marks, mine, moved))
    for path in dict.fromkeys(one.path for one in left):
        mine = [one for one in left if one.path == path]
        found.append(_file(FileChange(path, path), marks, mine, moved))
    return tuple(found)


def counted(files: Sequence[FileChange], marks: Marks) -> tuple[int, int, int]:
    """The numbers of lines added, removed, and not read yet."""
    added = removed = unread = 0
    for file in files:
        plus = {line.number for line in file.added}
        minus = {line.number for line in file.removed}
        added, removed = added + len(plus), removed + len(minus)
        unread += len(plus.difference(lines_in(marks.added.get(file.path, ()))))
        unread += len(minus.difference(lines_in(marks.removed.get(file.former, ()))))
        unread += not _head_is_read(file, marks)
    return added, removed, unread + len(marks.gone)


def _head_is_read(file: FileChange, marks: Marks) -> bool:
    head = head_of(file)
    return not head or marks.heads.get(key_of(file)) == head


def _file(
    file: FileChange, marks: Marks, gone: list[Gone], moved: dict[tuple[str, str, int], str]
) -> FileRead:
    added = set(lines_in(marks.added.get(file.path, ())))
    removed = set(lines_in(marks.removed.get(file.former, ())))
    seen = Counter[str]()
    hunks = [_hunk(file, hunk, added, removed, gone, moved, seen) for hunk in file.hunks]
    left = runs(sorted(gone, key=lambda one: one.line), lambda one: one.line)
    hunks += [_identified(file, "", list(map(_gone, run)), seen) for run in left]
    head = head_of(file)
    head_read = _head_is_read(file, marks)
    kind: Literal["changed", "new", "deleted", "renamed"] = "changed"
    if file.is_new or file.is_gone:
        kind = "new" if file.is_new else "deleted"
    elif file.former != file.path:
        kind = "renamed"
    return FileRead(
        path=shown_text(file.path),
        former=shown_text(file.former),
        kind=kind,
        head=shown_text(head),
        head_read=head_read,
        binary=file.is_binary,
        generated=is_made(file),
        added=sum(1 for _ in file.added),
        removed=sum(1 for _ in file.removed),
        unread=sum(hunk.unread for hunk in hunks) + (not head_read),
        hunks=tuple(hunks),
    )


def _hunk(
    file: FileChange,
    hunk: Hunk,
    added: set[int],
    removed: set[int],
    gone: list[Gone],
    moved: dict[tuple[str, str, int], str],
    seen: Counter[str],
) -> HunkRead:
    spaces, words = only_spaces(file.path, hunk), word_marks(hunk)
    lines: list[LineRead] = []
    old, new = hunk.old + (not hunk.old_count), hunk.new + (not hunk.new_count)
    here = [one for one in gone if hunk.new <= one.line <= hunk.new + hunk.new_count]
    gone[:] = [one for one in gone if one not in here]
    for at, (sign, number, text) in enumerate(hunk.lines):
        while here and here[0].line <= new and sign != "-":
            lines.append(_gone(here.pop(0)))
        place = (file.former if sign == "-" else file.path, sign, number)
        lines.append(
            LineRead(
                sign,
                shown_text(text),
                old if sign != "+" else None,
                new if sign != "-" else None,
                read=number in (added if sign == "+" else removed) if sign != " " else False,
                moved=moved.get(place, ""),
                space=at in spaces,
                marks=words.get(at, ()),
            )
        )
        old, new = old + (sign != "+"), new + (sign != "-")
    lines += map(_gone, here)
    return _identified(file, hunk.heading, lines, seen)


def _identified(file: FileChange, heading: str, lines: list[LineRead], seen: Counter[str]) -> HunkRead:
    told = "\n".join(f"{line.sign}{line.gone:d}{line.text}" for line in lines if line.sign in "+-")
    id = sha256(f"{file.path}\n{told}".encode("utf-8", "surrogateescape")).hexdigest()[:12]
    seen[id] += 1
    id = f"{id}-{seen[id]}" if seen[id] > 1 else id
    return HunkRead(id, shown_text(heading), sum(line.unread for line in lines), tuple(lines))


def _gone(one: Gone) -> LineRead:
    number = one.line if one.sign == "-" or one.there else None
    return LineRead(one.sign, shown_text(one.text), new=number, gone=True)


def shown_text(text: str) -> str:
    """Escapes bytes that are not text, and cuts a long line, with the number of characters left out."""
    plain = text.encode("utf-8", "surrogateescape").decode("utf-8", "backslashreplace")
    return (
        plain if len(plain) <= _LONGEST else f"{plain[:_LONGEST]} … {len(plain) - _LONGEST} more characters"
    )


def only_unread(files: Sequence[FileRead]) -> tuple[FileRead, ...]:
    """Only what is new since it was read, with a few lines around, and how many are left out."""
    found = []
    for file in files:
        if file.unread:
            hunks = tuple(_narrowed(hunk) for hunk in file.hunks if hunk.unread)
            found.append(structs.replace(file, hunks=hunks))
    return tuple(found)


def _narrowed(hunk: HunkRead) -> HunkRead:
    if not any(line.read for line in hunk.lines):
        return hunk
    unread = [at for at, line in enumerate(hunk.lines) if line.unread]
    near = {place for at in unread for place in range(at - _AROUND, at + _AROUND + 1)}
    lines: list[LineRead] = []
    left = 0
    for at, line in enumerate(hunk.lines):
        if at not in near:
            left += 1
            continue
        if left:
            lines.append(_left_out(left))
            left = 0
        lines.append(line)
    if left:
        lines.append(_left_out(left))
    return structs.replace(hunk, lines=tuple(lines))


def _left_out(number: int) -> LineRead:
    return LineRead("…", f"{number} line{'' if number == 1 else 's'} as before")
