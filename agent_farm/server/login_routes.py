"""Logging in and out: a one-time ticket from `af dash` becomes a login that the page keeps."""

from __future__ import annotations

import asyncio
import json
import re

from starlette.requests import Request
from starlette.responses import Response
from starlette.routing import Route

from agent_farm.errors import AgentFarmError
from agent_farm.server.answers import answer, answer_error, body_of, refuse
from agent_farm.server.auth import caller_of, listening_port
from agent_farm.server.login_pages import LoginPages
from agent_farm.server.logins import TICKET_SECONDS, Logins

_MOST_BYTES = 10_000


def login_routes(logins: Logins, pages: LoginPages) -> list[Route]:
    async def issue(request: Request) -> Response:
        """Only with the architect's token: a logged-in page cannot create further logins."""
        caller = caller_of(request.scope)
        if caller is None or caller.login is not None:
            return refuse(403, "foreign", "Refused: tickets need the architect's token", hint="af dash")
        ticket = logins.issue_ticket()
        document: dict[str, object] = {"ticket": ticket, "seconds": TICKET_SECONDS}
        asked = await _document(request)
        if asked.get("page") is True:
            view = asked.get("view")
            leads_to = f"/{view}" if isinstance(view, str) and re.fullmatch("[a-z]+", view) else ""
            try:
                page = pages.write(ticket, f"http://{request.headers['host']}/login#{ticket}{leads_to}")
            except AgentFarmError as error:
                return answer_error(error)
            asyncio.get_running_loop().call_later(TICKET_SECONDS, pages.remove, ticket)
            document["page"] = str(page)
        return answer(document)

    async def session(request: Request) -> Response:
        query = request.query_params
        id, nonce = query.get("login", ""), query.get("nonce", "")
        proof = logins.prove(id, nonce[:100], listening_port(request.scope)) if id and nonce else None
        return answer({"logged_in": _login(request) is not None or proof is not None, "proof": proof})

    async def enter(request: Request) -> Response:
        ticket = (await _document(request)).get("ticket")
        login = logins.redeem(ticket, listening_port(request.scope)) if isinstance(ticket, str) else None
        if login is None:
            why = "Each address works once, and for two minutes."
            return refuse(401, "login", "This address has been used or is too old", why, "af dash")
        assert isinstance(ticket, str)
        pages.remove(ticket)
        return answer({"logged_in": True, "login": login})

    async def leave(request: Request) -> Response:
        if login := _login(request):
            logins.end(login)
        return answer({"logged_in": False})

    return [
        Route("/api/tickets", issue, methods=["POST"]),
        Route("/api/session", session),
        Route("/api/login", enter, methods=["POST"]),
        Route("/api/logout", leave, methods=["POST"]),
    ]


def _login(request: Request) -> str | None:
    caller = caller_of(request.scope)
    return caller.login if caller else None


async def _document(request: Request) -> dict[str, object]:
    """The JSON object in the body; {} for anything else."""
    try:
        document = json.loads(await body_of(request, _MOST_BYTES) or b"")
    except (ValueError, RecursionError, AgentFarmError):
        return {}
    return document if isinstance(document, dict) else {}
