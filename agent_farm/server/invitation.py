"""A login for the browser: the farm's server is asked for an address, or a page, that is good once."""

from __future__ import annotations

import http.client
import json
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from agent_farm.errors import AgentFarmError
from agent_farm.server.address import ServerAddress
from agent_farm.server.launching import ensure_server

_SECONDS = 20.0
_AGAIN = "af butler stop && af dash"


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
    address = ensure_server(root)
    document = _ask(address, {"page": with_page, "view": view})
    page = Path(document["page"]).as_uri() if with_page else None
    return Invitation(
        f"http://localhost:{address.port}/login#{document['ticket']}{view and f'/{view}'}", page
    )


def _ask(address: ServerAddress, body: dict[str, Any]) -> dict[str, Any]:
    """A server that is being started holds the connection until it is up."""
    connection = http.client.HTTPConnection("localhost", address.port, timeout=_SECONDS)
    try:
        connection.request(
            "POST", "/api/tickets", json.dumps(body), {"Authorization": f"Bearer {address.token}"}
        )
        response = connection.getresponse()
        data = response.read()
    except (OSError, http.client.HTTPException) as error:
        raise AgentFarmError(
            f"The farm's server on port {address.port} does not answer",
            why=str(error) or type(error).__name__,
            hint="af butler logs",
        ) from error
    finally:
        connection.close()
    if response.status != 200:
        why = "It may be of an older version." if response.status in (401, 404, 405) else None
        raise AgentFarmError(f"The farm's server answered {response.status}", why=why, hint=_AGAIN)
    document: dict[str, Any] = json.loads(data)
    return document
