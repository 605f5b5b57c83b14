"""Repository settings that run, copy, pass or widen something hold only after the user agreed to them.

The user is asked once, for an exact text and the bytes of the repository's files that the text names. What
has changed while they were reading is not approved.
"""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Annotated

from msgspec import Meta, Struct

from agent_farm.digests import sha256
from agent_farm.disk import file_lock
from agent_farm.documents import load, store
from agent_farm.errors import ConsentNeeded
from agent_farm.paths import user_state_directory
from agent_farm.printable import printable

Ask = Callable[["Sequence[ConsentRequest]"], bool]
Shown = Annotated[
    str,
    Meta(
        pattern="^[0-9a-f]{64}$",
        description="The `consent` of a refusal: approves what that one showed, and nothing else",
    ),
]
Consent = bool | Shown
HINT = "af config agree"
_CHUNK = 1 << 20
# The file from which a program takes its commands by default.
_READS = {
    **dict.fromkeys(("make", "gmake"), ("GNUmakefile", "makefile", "Makefile")),
    **dict.fromkeys(("npm", "npx", "pnpm", "yarn", "bun"), ("package.json",)),
    **dict.fromkeys(("python", "python3"), ("__main__.py",)),
    "just": ("justfile", "Justfile", ".justfile"),
}


class ConsentRequest(Struct, frozen=True):
    """What the repository wants: `origin` is the setting or file it comes from.

    `files` are the repository's own files that would run: their bytes are agreed to as well.
    """

    origin: str
    content: str
    files: tuple[Path, ...] = ()

    def fingerprint(self, root: Path) -> str:
        parts = (os.fsencode(root), _bytes(self.origin), _bytes(self.content))
        total = sha256(b"\0".join(parts))
        for file in self.files:
            name = sha256(_bytes(os.path.relpath(file, root))).digest()
            total = sha256(total.digest() + name + _digest(file))
        return total.hexdigest()

    @property
    def shown(self) -> str:
        """What a person sees: no terminal escapes, and no line that could pass for another request."""
        text = printable(self.content.rstrip()).replace("\n", "\n      ")
        unnamed = sorted({file.name for file in self.files if file.name not in self.content})
        origin = self.origin + (f", with {', '.join(unnamed)}" if unnamed else "")
        return f"{printable(origin).replace(chr(10), '?')}: {text}"


def require_consent(root: Path, requests: Iterable[ConsentRequest], *, yes: Consent, ask: Ask | None) -> None:
    """Returns if all is approved, now or before; otherwise raises ConsentNeeded.

    `yes` is the user's --yes, to whatever there is now, or says which refusal was read. `ask` asks the
    question, and is None if nobody can answer.
    """
    new = _new(root, requests)
    if not new:
        return
    if yes is not True and yes != _shown(new) and (ask is None or not ask(tuple(new.values()))):
        raise _needed(new, is_other=bool(yes))
    _remember(new)
    if changed := _new(root, new.values()):
        raise _needed(changed, is_other=True)


def _needed(new: Mapping[str, ConsentRequest], *, is_other: bool) -> ConsentNeeded:
    if is_other:
        what = "This repository wants something that was not shown before"
        why = "It has changed since, or is needed in addition. Read it, then approve it."
    else:
        what = "This repository wants something that nobody has agreed to"
        why = f"Read it, then approve it once with --yes; {HINT} shows everything that waits for approval."
    error = ConsentNeeded(what, why=why, evidence=[request.shown for request in new.values()])
    error.consent = _shown(new)
    return error


def not_agreed(root: Path, requests: Iterable[ConsentRequest]) -> list[ConsentRequest]:
    """The requests that are not approved in their present form."""
    return list(_new(root, requests).values())


def remember(root: Path, requests: Iterable[ConsentRequest]) -> None:
    """Approves them in their present form, unasked."""
    _remember({request.fingerprint(root): request for request in requests})


def _new(root: Path, requests: Iterable[ConsentRequest]) -> dict[str, ConsentRequest]:
    """Those not approved in their present form, by the fingerprint of that form."""
    wanted = list(dict.fromkeys(requests))
    if not wanted:
        return {}
    agreed = _load(_file())
    found = {request.fingerprint(root): request for request in wanted}
    return {fingerprint: request for fingerprint, request in found.items() if fingerprint not in agreed}


def _shown(new: Iterable[str]) -> str:
    return sha256("".join(sorted(new)).encode()).hexdigest()


def _remember(fingerprints: Iterable[str]) -> None:
    file = _file()
    with file_lock(file.with_suffix(".lock")):
        store(file, _File(sorted(_load(file) | {*fingerprints})))


def named_files(root: Path, command: str) -> tuple[Path, ...]:
    """The repository's own files that `command` names, also relative to a directory that it names."""
    home = root.resolve()
    places = [word for word in _words(command) if _is_inside(home / word, home) and (home / word).is_dir()]
    found = (home / name for name in named_paths(command, places))
    return tuple(sorted({path.resolve() for path in found if _is_inside(path, home) and path.is_file()}))


def named_paths(command: str, places: Sequence[str] = ()) -> list[str]:
    """The paths that the words of `command` may mean, relative to the repository's root.

    `places` are the words that are directories.
    `cd tools && ./setup.sh` is tools/setup.sh, `make -C tools` is tools/Makefile.
    """
    words = _words(command)
    meant = [*words, *_read_unasked(words)]
    names = (os.path.normpath(os.path.join(place, word)) for place in ("", *places) for word in meant)
    return sorted({name for name in names if name not in (".", "..") and not name.startswith("../")})


def _words(command: str) -> list[str]:
    """Every word of `command` that could be a path, in sh or in an argument like `--config=tools/x.json`."""
    found = re.split(r"[\s;|&()<>\"'`$={},]+", command)
    with suppress(ValueError):  # quotes that do not end
        found += shlex.split(command)
    return [word for word in found if word and "\0" not in word]


def _read_unasked(words: Sequence[str]) -> list[str]:
    """Files that the programs named here read by default, and modules that Python is told to run."""
    programs = (os.path.basename(word) for word in words)
    names = [name for program in programs for name in _READS.get(program.partition(".")[0], ())]
    for option, module in pairwise(words):
        if option == "-m":
            place = module.replace(".", "/")
            names += [f"{place}.py", f"{place}/__main__.py"]
    return names


def _is_inside(path: Path, home: Path) -> bool:
    try:
        return path.resolve().is_relative_to(home) and path.exists()
    except (OSError, RuntimeError, ValueError):  # too long, a loop of links
        return False


def _digest(file: Path) -> bytes:
    total = sha256()
    try:
        with file.open("rb") as content:
            while chunk := content.read(_CHUNK):
                total.update(chunk)
    except OSError as error:
        total.update(f"unreadable: {error.errno}".encode())
    return total.digest()


def _bytes(text: str) -> bytes:
    return text.encode(errors="surrogatepass")


def _file() -> Path:
    return user_state_directory() / "consent.json"


class _File(Struct, frozen=True):
    agreed: list[str]


def _load(file: Path) -> set[str]:
    try:
        return set(load(file, _File).agreed)
    except FileNotFoundError:
        return set()
