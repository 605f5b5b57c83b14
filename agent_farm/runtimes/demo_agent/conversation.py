"""What the demo agent remembers: one JSON file per conversation."""

from __future__ import annotations

import json
import os
from pathlib import Path


class UnknownConversation(Exception):
    pass


class Conversation:
    """How many messages it heard, of how many bytes; `file` is the one that it wrote last."""

    def __init__(self, id: str, messages: int = 0, heard_bytes: int = 0, file: str | None = None) -> None:
        self.id = id
        self.messages = messages
        self.heard_bytes = heard_bytes
        self.file = file

    def remember(self, text: str) -> str:
        """Add a message and give back its SHA-256."""
        import hashlib  # OpenSSL takes 2 ms, and not every agent is told something

        content = text.encode("utf-8", "surrogateescape")
        self.messages += 1
        self.heard_bytes += len(content)
        return hashlib.sha256(content).hexdigest()

    def save(self, home: Path | None) -> None:
        if home is None:
            return
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = _file(home, self.id)
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps(vars(self)))
        temporary.replace(target)


def open_conversation(home: Path | None, new: str | None, resumed: str | None) -> Conversation:
    """A new conversation, or the one to go on with; UnknownConversation when that does not exist."""
    if resumed is None:
        return Conversation(new or os.urandom(16).hex())
    if home is None or not _file(home, resumed).exists():
        raise UnknownConversation(f"no conversation {resumed}")
    return Conversation(**json.loads(_file(home, resumed).read_text()))


def _file(home: Path, identity: str) -> Path:
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in identity)
    return home / f"{safe}.json"
