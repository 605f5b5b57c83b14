"""What a source may be called, and what it may point to: a directory, a file, or a git URL."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

from agent_farm.ask.agents import answering_clis
from agent_farm.errors import NotFound, UsageError

Kind = Literal["git", "directory", "file"]
GIT_PROTOCOLS = ("file", "git", "http", "https", "ssh")

_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")
_BESIDE = ("prompt.md", "lctx-files")  # the links to the sources
_SCP_LIKE = re.compile(r"(?:[\w.-]+@)?[\w.-]+:(?!:)[^\\]*")
_PAGES = (".txt", ".md", ".html")
_HELPER = re.compile(r"[\w+.-]+::")


def require_name(name: str) -> str:
    if not _NAME.fullmatch(name):
        raise UsageError(
            f"{name!r} cannot be the name of a source",
            why="a name is 1 to 64 of the characters A-Z a-z 0-9 . _ - and starts with a letter or digit",
        )
    taken = (*_BESIDE, *(one for _, ask in answering_clis() for one in ask.instructions))
    if name.lower() in map(str.lower, taken):
        raise UsageError(
            f"{name!r} cannot be the name of a source", why="af puts a file of that name beside the sources"
        )
    return name


def detect_kind(target: str) -> Kind:
    """What kind of source `target` is; raises if it is none."""
    _require_text(target)
    if _HELPER.match(target):
        raise _refused(target, "a git remote helper runs a program of its own")
    if "://" in target:
        require_git_url(target)
        if target.lower().startswith("http") and target.lower().endswith(_PAGES):
            raise _refused(target, "it is a page; a source is a directory, a file or a git repository")
        return "git"
    path = Path(target).expanduser()
    if path.is_dir():
        return "git" if _is_bare_repository(path) else "directory"
    if path.is_file():
        return "file"
    if os.path.lexists(path):
        why = "the link points to nothing" if path.is_symlink() else "it is neither a file nor a directory"
        raise NotFound(f"{path} cannot be a source", why=why)
    if _SCP_LIKE.fullmatch(target) and "/" not in target.split(":")[0]:
        return "git"
    raise NotFound(f"{path} does not exist", hint="af sources add NAME PATH|URL")


def require_path(target: str, kind: Kind) -> str:
    """The absolute path of an existing file or directory."""
    _require_text(target)
    path = Path(target).expanduser()
    if not (path.is_dir() if kind == "directory" else path.is_file()):
        raise NotFound(f"{path} is not a {kind}")
    return os.path.abspath(path)


def require_git_url(target: str) -> str:
    """The URL as git gets it: no option, no remote helper; a local path becomes absolute."""
    _require_text(target)
    if _HELPER.match(target):
        raise _refused(target, "a git remote helper runs a program of its own")
    if "://" in target:
        scheme, _, rest = target.partition("://")
        if scheme.lower() not in GIT_PROTOCOLS:
            raise _refused(target, f"git is only asked over {', '.join(GIT_PROTOCOLS)}")
        if rest.startswith("-") or "@-" in rest.split("/")[0]:
            raise _refused(target, "its host would be read as an option")
        return target
    path = Path(target).expanduser()
    return os.path.abspath(path) if path.exists() else target


def without_password(url: str) -> str:
    """The URL as it may be shown: nobody else should see a token in it."""
    if "://" not in url or "@" not in url:
        return url
    parts = urlsplit(url)
    user, at, host = parts.netloc.rpartition("@")
    if not at or (":" not in user and parts.scheme == "ssh"):
        return url
    shown = f"{user.split(':')[0]}:***" if ":" in user else "***"
    return urlunsplit(parts._replace(netloc=f"{shown}@{host}"))


def _require_text(target: str) -> None:
    if not target.strip():
        raise UsageError("A source needs a path or a URL", hint="af sources add NAME PATH|URL")
    if any(ord(char) < 32 or ord(char) == 127 for char in target):
        raise UsageError("A path or URL with control characters cannot be a source", why=repr(target))
    if target.startswith("-"):
        raise _refused(target, "it would be read as an option")


def _is_bare_repository(path: Path) -> bool:
    return all((path / part).exists() for part in ("HEAD", "objects", "refs"))


def _refused(target: str, why: str) -> UsageError:
    return UsageError(f"{target} is refused", why=why, hint="af sources add NAME https://host/repository.git")
