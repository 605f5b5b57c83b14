"""The address of a machine as a person writes it: `ssh://[USER@]HOST[:PORT][/DIRECTORY]`."""

from __future__ import annotations

import re

from msgspec import Struct

from agent_farm.errors import UsageError

# No part of it can be an option, a second word for a shell, or a place above the directory.
_ADDRESS = re.compile(
    r"ssh://(?:(?P<user>[A-Za-z0-9_][A-Za-z0-9_.-]*)@)?"
    r"(?P<host>[A-Za-z0-9_][A-Za-z0-9_.-]*)"
    r"(?::(?P<port>[0-9]{1,5}))?"
    r"(?P<directory>(?:/[A-Za-z0-9_+@%=-][A-Za-z0-9_.+@%=-]*)*)/?"
)
_LONGEST = 400


class Address(Struct, frozen=True):
    """`directory` is absolute on that machine; "" means af's own place in the user's home."""

    host: str
    user: str | None = None
    port: int | None = None
    directory: str = ""

    @property
    def destination(self) -> str:
        return f"{self.user}@{self.host}" if self.user else self.host

    @property
    def words(self) -> list[str]:
        """What a person would type after `ssh`."""
        return [*(["-p", str(self.port)] if self.port else []), self.destination]

    @property
    def text(self) -> str:
        port = f":{self.port}" if self.port else ""
        return f"ssh://{self.destination}{port}{self.directory}"


def parse_address(text: str) -> Address:
    found = _ADDRESS.fullmatch(text) if len(text) <= _LONGEST else None
    port = int(found["port"]) if found and found["port"] else None
    if found is None or (port is not None and not 1 <= port <= 65535):
        raise UsageError(
            f"{text!r:.80} is not an address of a machine",
            why="An address is ssh://[USER@]HOST[:PORT][/DIRECTORY], of letters, digits and . _ -",
            hint="af fleet add ssh://HOST",
        )
    return Address(found["host"], found["user"], port, found["directory"])
