"""`af mcp`: passes an AI session's messages from stdio to the farm's server, and the answers back."""

from __future__ import annotations

import http.client
import json
import logging
import threading
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import BinaryIO

from agent_farm.errors import AgentFarmError
from agent_farm.server.client import asked_again, begun, post
from agent_farm.sessions.failures import log_failure

_ACCEPT = "application/json, text/event-stream"
_INTERNAL_ERROR = -32603
_INVALID_REQUEST = -32600
_PARSE_ERROR = -32700

_log = logging.getLogger(__name__)


class Bridge:
    """One HTTP request per message, each on its own thread, so that a slow call delays no other.

    For each message the server is looked for, and started if necessary, because it may have ended since.
    """

    def __init__(self, root: Path, answers: BinaryIO) -> None:
        self._root = root
        self._answers = answers
        self._writing = threading.Lock()
        self._open: dict[str, http.client.HTTPConnection] = {}
        self._given_up: set[str] = set()

    def serve(self, messages: BinaryIO) -> None:
        """Until the client closes its end; answers still to come are then abandoned."""
        for line in messages:
            if not line.strip():
                continue
            try:
                message = json.loads(line)
            except (ValueError, RecursionError) as error:
                self._refuse(None, _PARSE_ERROR, f"This is not JSON: {error}")
                continue
            if not isinstance(message, dict):
                self._refuse(None, _INVALID_REQUEST, "A message is one JSON object a line")
            elif message.get("method") == "notifications/cancelled":
                params = message.get("params")
                self._give_up(json.dumps(params.get("requestId") if isinstance(params, dict) else None))
            else:
                threading.Thread(target=self._pass_on, args=(line, message.get("id")), daemon=True).start()

    def _pass_on(self, line: bytes, id: object) -> None:
        key = json.dumps(id)
        try:
            self._ask(line, key)
        except Exception as error:  # whatever it is, the client waits for an answer
            if not isinstance(error, AgentFarmError | OSError | http.client.HTTPException):
                log_failure(_log, "A message", error)
            if id is not None and key not in self._given_up:
                self._refuse(id, _INTERNAL_ERROR, _words(error))
        finally:
            if connection := self._open.pop(key, None):
                connection.close()
            self._given_up.discard(key)

    def _ask(self, line: bytes, key: str) -> None:
        with asked_again(self._root, partial(self._post, line, key)) as response:
            if response.status >= 400:
                raise AgentFarmError(f"The farm's server answered {response.status}", hint="af butler logs")
            is_stream = response.headers.get("Content-Type", "").startswith("text/event-stream")
            if not is_stream:
                if body := response.read().strip():
                    self._write(body)
                return
            for said in response:
                if said.startswith(b"data:") and (data := said.removeprefix(b"data:").strip()):
                    self._write(data)

    def _post(self, line: bytes, key: str) -> http.client.HTTPResponse:
        if key in self._given_up:
            raise ConnectionAbortedError("nobody waits for it any more")
        connection = post(self._root, "/mcp", line, {"Accept": _ACCEPT})
        if key != "null":
            self._open[key] = connection
        return begun(connection)

    def _give_up(self, key: str) -> None:
        """The server notices by the end of the connection."""
        if connection := self._open.get(key):
            self._given_up.add(key)
            with suppress(OSError, AttributeError):
                connection.sock.shutdown(2)

    def _refuse(self, id: object, code: int, message: str) -> None:
        error = {"jsonrpc": "2.0", "id": id, "error": {"code": code, "message": message}}
        self._write(json.dumps(error).encode())

    def _write(self, line: bytes) -> None:
        with self._writing, suppress(BrokenPipeError):
            self._answers.write(line + b"\n")
            self._answers.flush()


def _words(error: Exception) -> str:
    if isinstance(error, OSError | http.client.HTTPException):
        return f"The farm's server does not answer: {error}\nhint: af butler logs"
    if not isinstance(error, AgentFarmError):
        return f"This is a bug in af: {type(error).__name__}: {error}"
    return "\n".join([error.sentence, *([f"hint: {error.hint}"] if error.hint else [])])
