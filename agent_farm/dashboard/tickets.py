"""A login for the browser: the farm's server is asked for an address that is good once."""

from __future__ import annotations

import http.client
import json
from pathlib import Path

from agent_farm.butler.server_files import ServerAddress
from agent_farm.butler.server_handle import ensure_server
from agent_farm.errors import AgentFarmError

_SECONDS = 20.0
_AGAIN = "af butler stop && af dash"


def login_address(root: Path) -> str:
    """Starts the server when it does not run. The ticket is in the fragment: no request, no log has it."""
    address = ensure_server(root)
    return f"http://localhost:{address.port}/login#{_ticket(address)}"


def _ticket(address: ServerAddress) -> str:
    """A server that is being started holds the connection until it is up."""
    connection = http.client.HTTPConnection("localhost", address.port, timeout=_SECONDS)
    try:
        connection.request("POST", "/api/tickets", b"{}", {"Authorization": f"Bearer {address.token}"})
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
    return str(json.loads(data)["ticket"])
