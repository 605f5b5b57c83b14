"""A login for the browser: asks the farm's server for an address, or a page, that works once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_farm.server.client import ask_server
from agent_farm.server.launching import ensure_server


@dataclass(frozen=True, slots=True)
class Invitation:
    """`address` is only to be shown to the user: it contains the ticket, which no command line may have.

    `page` is a file that leads there, and that only this user can read.
    """

    address: str
    page: str | None


def invite(root: Path, *, with_page: bool, view: str = "") -> Invitation:
    """Starts the server if it is not running. The ticket is in the fragment, which no request and no log
    contains.

    `view` is the part of the page that it leads to.
    """
    port = ensure_server(root).port
    told = ask_server(root, "tickets", {"page": with_page, "view": view}, lambda text: None)
    page = Path(told["page"]).as_uri() if with_page else None
    return Invitation(f"http://localhost:{port}/login#{told['ticket']}{view and f'/{view}'}", page)
