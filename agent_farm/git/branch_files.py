"""Reads a branch from git's own files, without a process; where they do not tell, git has to be asked."""

from __future__ import annotations

import os
import re
from pathlib import Path

from agent_farm.builders.ref_names import OBJECT_NAME
from agent_farm.disk import read_plain

_COMMIT = re.compile(OBJECT_NAME)
_LONGEST = 1_024  # bytes of a file that holds one commit's name
_LONGEST_LIST = 1 << 20


def branch_in_files(common_dir: Path, name: str) -> str | None:
    """Its commit, "" if there is no such branch; None if the files do not tell.

    git packs a branch before it deletes the branch's own file, so that is looked at first.
    """
    ref = f"refs/heads/{name}"
    if os.path.normpath(ref) != ref or (common_dir / "reftable").exists():
        return None
    try:
        text = os.fsdecode(read_plain(common_dir / ref, limit=_LONGEST)).strip()
        return text if _COMMIT.fullmatch(text) else None  # it may refer to another branch
    except (FileNotFoundError, NotADirectoryError):
        return _packed(common_dir, ref)
    except (OSError, ValueError):
        return None


def _packed(common_dir: Path, ref: str) -> str | None:
    try:
        packed = read_plain(common_dir / "packed-refs", limit=_LONGEST_LIST)
    except FileNotFoundError:
        return ""
    except OSError:
        return None
    found = re.search(rb"^(\S+) " + re.escape(os.fsencode(ref)) + rb"$", packed, re.MULTILINE)
    return os.fsdecode(found[1]) if found else ""
