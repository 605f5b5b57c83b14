"""Commands and copies that come from a repository run only after its user agreed, once per content."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from agent_farm.disk import file_lock, load_json, make_directory, replace_file
from agent_farm.errors import ConsentNeeded, DamagedFile
from agent_farm.paths import user_state_directory

Ask = Callable[["Sequence[Request]"], bool]


@dataclass(frozen=True, slots=True)
class Request:
    """What the repository wants: `origin` is the setting or file it comes from."""

    origin: str
    content: str

    def fingerprint(self, root: Path) -> str:
        parts = (os.fsencode(root), os.fsencode(self.origin), os.fsencode(self.content))
        return hashlib.sha256(b"\0".join(parts)).hexdigest()


def require_consent(root: Path, requests: Sequence[Request], *, yes: bool, ask: Ask | None) -> None:
    """Return when all was agreed to, now or before; raise ConsentNeeded otherwise.

    `yes` is the user's --yes; `ask` puts the question and is None where nobody can answer.
    """
    if not requests:
        return
    file = user_state_directory() / "consent.json"
    agreed = _load(file)
    new = [request for request in requests if request.fingerprint(root) not in agreed]
    if not new:
        return
    if not yes and (ask is None or not ask(new)):
        raise ConsentNeeded(
            "This repository wants to run or copy what nobody has agreed to",
            why="Read it, then agree once with --yes.",
            evidence=[f"{request.origin}: {request.content}" for request in new],
        )
    _remember(file, {request.fingerprint(root) for request in new})


def _remember(file: Path, fingerprints: set[str]) -> None:
    make_directory(file.parent)
    with file_lock(file.with_suffix(".lock")):
        import json

        agreed = sorted(_load(file) | fingerprints)
        replace_file(file, json.dumps({"version": 1, "agreed": agreed}, indent=1) + "\n")


def _load(file: Path) -> set[str]:
    if not file.exists():
        return set()
    document = load_json(file)
    agreed = document.get("agreed") if isinstance(document, dict) and document.get("version") == 1 else None
    if not isinstance(agreed, list):
        raise DamagedFile(f"{file} is damaged or newer than this version", hint=f"mv {file} {file}.old")
    return set(agreed)
