"""Ids and branches of builders, for each kind of task; the caller reserves the first free one."""

from __future__ import annotations

import os
import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from typing import TypeVar

from msgspec import Struct

from agent_farm.digests import sha256
from agent_farm.errors import AgentFarmError, NotFound, UsageError, nearest

Draw = Callable[[], str]
T = TypeVar("T")

_ALPHABET = "abcdefghijklmnopqrstuvwxyz0123456789"
# Not compiled at start: few commands need one of them.
_SPEC_FILE = r"([A-Za-z0-9][A-Za-z0-9_]*)-([A-Za-z0-9][A-Za-z0-9._-]*)\.md"
_NAME = r"[A-Za-z0-9][A-Za-z0-9_-]*"
_GIVEN_NAME = r"[A-Za-z][A-Za-z0-9_-]{0,49}"
_DRAWS = 50
_WORDS, _WORDS_LENGTH = 4, 32
_SLUG_LENGTH = 40
# Words that never distinguish two tasks.
_LEFT_OUT = frozenset(("a", "an", "and", "for", "in", "of", "on", "the", "to", "with"))
_LISTED = 20
_NO_SPECS = "There are no specs yet; one is a file like codev/specs/0001-greeting.md."


class Name(Struct, frozen=True):
    """The id and branch of a new builder."""

    id: str
    branch: str


class Spec(Struct, frozen=True):
    id: str
    name: str

    @property
    def spec_path(self) -> str:
        return f"codev/specs/{self.id}-{self.name}.md"

    @property
    def plan_path(self) -> str:
        return f"codev/plans/{self.id}-{self.name}.md"


def draw_suffix() -> str:
    """Four random characters of [a-z0-9], each equally likely."""
    letters = ""
    while len(letters) < 4:
        value = os.urandom(1)[0]
        if value < 252:  # the largest multiple of 36 in a byte
            letters += _ALPHABET[value % 36]
    return letters


def spec_name(spec: Spec) -> Name:
    return Name(spec.id, f"builder/{spec.id}-{spec.name}")


def task_names(text: str, draw: Draw = draw_suffix) -> Iterator[Name]:
    return _drawn(f"task-{sha256(text.encode()).hexdigest()[:4]}", draw)


def word_names(text: str, draw: Draw = draw_suffix) -> Iterator[Name]:
    """`fix-login-redirect-x9k2`: the first words of a task; the usual names if no word fits in an id."""
    plain = unicodedata.normalize("NFKD", text[:500]).encode("ascii", "ignore").decode().lower()
    words = [word for word in re.findall(r"[a-z0-9]+", plain) if word not in _LEFT_OUT]
    slug = "-".join(words[:_WORDS])[:_WORDS_LENGTH].strip("-")
    return _drawn(slug, draw) if re.match("[a-z]", slug) else task_names(text, draw)


def slug_names(text: str) -> Iterator[Name]:
    """`003-login-t012-x9k2`: the name of the work, and a suffix."""
    slug = re.sub(r"[^a-z0-9]+", "-", text[:200].lower()).strip("-")[-_SLUG_LENGTH:].strip("-")
    return _drawn(slug or "item")


def issue_names(kind: str, number: int) -> Iterator[Name]:
    """`issue-42-x9k2`, or with a protocol `bugfix-42-x9k2`."""
    return _drawn(f"{kind}-{number}")


def given_name(name: str) -> Name:
    """The name that the user chose."""
    if not re.fullmatch(_GIVEN_NAME, name):
        raise UsageError(
            f"--name {name!r:.80} cannot be the name of a builder",
            why="A name is letters, digits, - and _, begins with a letter and has at most 50 characters.",
            hint="af spawn --name login-fix …",
        )
    return Name(name, f"builder/{name}")


def _drawn(prefix: str, draw: Draw = draw_suffix) -> Iterator[Name]:
    for _ in range(_DRAWS):
        id = f"{prefix}-{draw()}"
        yield Name(id, f"builder/{id}")


def protocol_names(protocol: str, epoch: int) -> Iterator[Name]:
    """If the second is taken, the next free one is used."""
    while True:
        yield Name(f"{protocol}-{epoch}", f"builder/protocol-{protocol}-{epoch}")
        epoch += 1


def shell_names(epoch: int, draw: Draw = draw_suffix) -> Iterator[Name]:
    return _drawn(f"shell-{epoch}", draw)


def first_free(names: Iterator[Name], is_taken: Callable[[Name], bool]) -> Name:
    for name in names:
        if not is_taken(name):
            return name
    raise AgentFarmError("No free builder id was found", why=f"{_DRAWS} draws were all taken.")


def list_specs(file_names: Iterable[str]) -> list[Spec]:
    """The specs among the files of codev/specs; README.md is not one."""
    return [Spec(*match.groups()) for name in sorted(file_names) if (match := re.fullmatch(_SPEC_FILE, name))]


def find_spec(project: str, file_names: list[str]) -> Spec:
    """The spec that a project id means: as written, or as a number (`9` for `0009`) if only one fits.

    The file's name, with or without its directory, is accepted too: that is what a shell completes.
    """
    specs = list_specs(file_names)
    file = project.removeprefix("codev/specs/").removesuffix(".md")
    exact = [spec for spec in specs if spec.id == project or f"{spec.id}-{spec.name}" == file]
    found = exact or [spec for spec in specs if _same_number(spec.id, project)]
    if len(found) == 1:
        return found[0]
    listed = [f"{spec.id}-{spec.name}" for spec in specs]
    if found:
        raise UsageError(
            f"Project {project} is ambiguous",
            evidence=[spec.spec_path for spec in found],
            hint=f"af spawn --project {found[0].id}" if len({spec.id for spec in found}) > 1 else None,
        )
    close = nearest(project, [*listed, *(spec.id for spec in specs)])
    named = next((name for name in listed if close in (name, name.partition("-")[0])), None)
    see = "ls codev/specs" if listed else "af init"
    raise NotFound(
        f"No spec for project {project} under codev/specs/",
        why=_what_there_is(listed, named) if listed else _NO_SPECS,
        # a number that only looks alike is another project: it was named above, and must not run unread
        hint=f"af spawn --project {close}" if close and not project.isdecimal() else see,
    )


def _what_there_is(names: list[str], close: str | None) -> str:
    more = f" and {len(names) - _LISTED} more" if len(names) > _LISTED else ""
    there_are = f"There are: {', '.join(names[-_LISTED:])}{more}"
    return f"The nearest is {close}. {there_are}" if close else there_are


def _same_number(left: str, right: str) -> bool:
    return left.isdecimal() and right.isdecimal() and int(left) == int(right)


def require_protocol(name: str, known: list[str]) -> str:
    """The protocol's name as written under codev/protocols/, whatever the case of `name`."""
    sound = [one for one in known if re.fullmatch(_NAME, one)]
    alike = [one for one in sound if one.lower() == name.lower()]
    if name in sound or len(alike) == 1:
        return name if name in sound else alike[0]
    close = nearest(name, known)
    raise NotFound(
        f"No protocol {name} under codev/protocols/",
        why=f"There are: {', '.join(known)}" if known else "There are no protocols yet.",
        hint=f"af spawn --protocol {close}" if close else (None if known else "af init"),
    )


def match_builder(prefix: str, ids: list[str]) -> str:
    """The one builder that `prefix` means; an exact id wins."""
    if prefix in ids:
        return prefix
    found = sorted(id for id in ids if prefix and id.startswith(prefix))
    if len(found) == 1:
        return found[0]
    if found:
        raise UsageError(f"{prefix} is ambiguous", why=f"It could be: {', '.join(found)}")
    close = nearest(prefix, ids)
    raise NotFound(
        f"No builder {prefix}",
        why=f"Did you mean {close}?" if close else ("There are no builders." if not ids else None),
        hint="af status" if ids else 'af spawn "…"',
    )
