"""Files that carry a ticket to the browser, because every user of the machine can read its command line."""

from __future__ import annotations

import os
from contextlib import suppress
from dataclasses import dataclass, field
from html import escape
from pathlib import Path

from agent_farm.disk import make_directory, replace_file
from agent_farm.errors import ForeignFile
from agent_farm.own_files import require_own_directory

_PAGE = """<!doctype html>
<html lang="en">
<head>
  <meta charset="utf-8">
  <meta name="referrer" content="no-referrer">
  <meta http-equiv="refresh" content="0; url={address}">
  <title>agent-farm</title>
</head>
<body><p><a href="{address}" rel="noreferrer">Open the dashboard</a></p></body>
</html>
"""


@dataclass(slots=True)
class LoginPages:
    """Each page is readable only by its user, and is removed once its ticket was used or is too old.

    Tickets only live in the server's memory, so pages of an earlier server are worthless.
    The pages are in the farm, because browsers from snap and flatpak can read neither hidden directories of
    the home nor /tmp.
    """

    directory: Path
    _pages: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with suppress(ForeignFile):  # reported when a page is to be written
            require_own_directory(self.directory)
            for left in self.directory.glob("*.html"):
                _remove(left)

    def write(self, ticket: str, address: str) -> Path:
        require_own_directory(self.directory)
        make_directory(self.directory)
        self.directory.chmod(0o700)
        page = self.directory / f"{os.urandom(8).hex()}.html"
        replace_file(page, _PAGE.format(address=escape(address)), mode=0o600)
        self._pages[ticket] = page
        return page

    def remove(self, ticket: str) -> None:
        page = self._pages.pop(ticket, None)
        if page is not None:
            _remove(page)


def _remove(page: Path) -> None:
    with suppress(OSError):
        page.unlink()
