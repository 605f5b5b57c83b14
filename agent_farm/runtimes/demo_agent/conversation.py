"""What the demo agent remembers: one JSON file per conversation."""

from __future__ import annotations

import hashlib
import json
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path


class UnknownConversation(Exception):
    pass


@dataclass(slots=True)
class Conversation:
    id: str
    messages: list[dict[str, object]] = field(default_factory=list)
    home: Path | None = None

    def remember(self, text: str) -> str:
        """Add a message, save, and give back its SHA-256."""
        content = text.encode("utf-8", "surrogateescape")
        digest = hashlib.sha256(content).hexdigest()
        self.messages.append({"sha256": digest, "bytes": len(content)})
        if self.home is not None:
            self._save(self.home)
        return digest

    def _save(self, home: Path) -> None:
        home.mkdir(mode=0o700, parents=True, exist_ok=True)
        target = _file(home, self.id)
        temporary = target.with_suffix(f".{os.getpid()}.tmp")
        temporary.write_text(json.dumps({"version": 1, "id": self.id, "messages": self.messages}))
        temporary.replace(target)


def open_conversation(home: Path | None, wanted: str | None, *, resume: bool) -> Conversation:
    """A new conversation, or the one to go on with; UnknownConversation when that does not exist."""
    identity = wanted or str(uuid.uuid4())
    if not resume:
        return Conversation(identity, home=home)
    if home is None or not _file(home, identity).exists():
        raise UnknownConversation(f"no conversation {identity}")
    stored = json.loads(_file(home, identity).read_text())
    return Conversation(identity, list(stored["messages"]), home)


def _file(home: Path, identity: str) -> Path:
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in identity)
    return home / f"{safe}.json"
