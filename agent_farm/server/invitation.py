"""A login for the browser: the farm's server is asked for an address, or a page, that is good once."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from agent_farm.server.client import ask_server
from agent_farm.server.launching import ensure_server


@dataclass(frozen=True, slots=True)
class Invitation:
    """`address` is for a person's eyes: it holds the ticket, which no command line may.

    `page` leads there, a file that only this user can read.
    """

    address: str
    page: str | None


def invite(root: Path, *, with_page: bool, view: str = "") -> Invitation:
    """Starts the server when it does not run. The ticket is in the fragment: no request, no log has it.

    `view` is the part of the page that it leads to.
    """
    port = ensure_server(root).port
    told = ask_server(root, "tickets", {"page": with_page, "view": view}, lambda text: None)
    page = Path(told["page"]).as_uri() if with_page else None
    return Invitation(f"http://localhost:{port}/login#{told['ticket']}{view and f'/{view}'}", page)
