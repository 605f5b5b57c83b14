"""Files that carry a ticket to the browser, whose command line every user of the machine can read."""

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
    """Each is its user's alone, and is removed once its ticket is used or too old.

    Tickets live in the server's memory, so that pages of an earlier server are good for nothing.
    They stand in the farm, not in a hidden directory of the home or in /tmp: browsers from snap and
    flatpak cannot read those.
    """

    directory: Path
    _pages: dict[str, Path] = field(default_factory=dict)

    def __post_init__(self) -> None:
        with suppress(ForeignFile):  # said once a page is to be written
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
