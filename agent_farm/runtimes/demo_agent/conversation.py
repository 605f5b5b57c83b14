"""What the demo agent remembers: one JSON file per conversation."""

from __future__ import annotations

import os

from agent_farm.lean import dumps, loads


class UnknownConversation(Exception):
    pass


class Leave(Exception):
    def __init__(self, code: int) -> None:
        super().__init__(code)
        self.code = code


class Conversation:
    """Counts the messages it got and their bytes; `file` is the file that it wrote last."""

    def __init__(self, id: str, messages: int = 0, heard_bytes: int = 0, file: str | None = None) -> None:
        self.id = id
        self.messages = messages
        self.heard_bytes = heard_bytes
        self.file = file

    def remember(self, text: str) -> str:
        """Add a message; returns its SHA-256."""
        from agent_farm.digests import sha256  # not every agent gets a message

        content = text.encode("utf-8", "surrogateescape")
        self.messages += 1
        self.heard_bytes += len(content)
        return sha256(content).hexdigest()

    def save(self, home: str | None) -> None:
        if home is None:
            return
        os.makedirs(home, 0o700, exist_ok=True)
        target = _file(home, self.id)
        temporary = f"{target.removesuffix('.json')}.{os.getpid()}.tmp"
        with open(temporary, "w") as file:
            file.write(dumps(vars(self)))
        os.replace(temporary, target)


def open_conversation(home: str | None, new: str | None, resumed: str | None) -> Conversation:
    """A new conversation, or the one to continue; UnknownConversation if that does not exist."""
    if resumed is None:
        return Conversation(new or os.urandom(16).hex())
    if home is None or not os.path.exists(_file(home, resumed)):
        raise UnknownConversation(f"no conversation {resumed}")
    with open(_file(home, resumed)) as file:
        return Conversation(**loads(file.read()))


def _file(home: str, identity: str) -> str:
    safe = "".join(letter if letter.isalnum() or letter in "-_" else "_" for letter in identity)
    return os.path.join(home, f"{safe}.json")
