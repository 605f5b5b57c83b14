"""Notifies the targets of `notify.to`: the desktop, the bell and a message in tmux, a web address.

Run as `tell.py <run directory>`, with the facts in AF_* variables as for a command of the user's own. The
targets are in launch.json, because an address may be secret and anybody can read arguments.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import threading
import urllib.error
import urllib.request
from base64 import b64encode
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from http.client import HTTPException, InvalidURL
from typing import Any
from urllib.parse import unquote_to_bytes, urlsplit

SECONDS = 10.0
SHOWN_MILLISECONDS = "8000"
_LONGEST = 300
_FIELDS = ("builder_id", "runtime", "state", "event", "reason")
_BY_APPLE = "on run argv\ndisplay notification (item 2 of argv) with title (item 1 of argv)\nend run"


class NotTold(Exception):
    """The message says why."""


Facts = Mapping[str, str]


def shown_target(word: str) -> str:
    """The target without the parts of its address that may be secret."""
    scheme, found, _ = word.partition("://")
    if not found:
        return word
    try:
        address = urlsplit(word)
        _ = address.port  # raises ValueError if the port is no number
        return f"{scheme}://{address.netloc.rpartition('@')[2]}/…"
    except ValueError:
        return f"{scheme}://…"


def tell(target: str, facts: Facts, *, farm: str, tmux: Sequence[str]) -> None:
    """NotTold if nobody can have noticed."""
    try:
        if target in _HERE:
            _HERE[target](facts, farm, tmux)
        else:
            _post(target, facts, farm)
    except subprocess.TimeoutExpired:
        raise NotTold(f"no answer within {SECONDS:g} seconds") from None
    except subprocess.CalledProcessError as error:
        raise NotTold(str(error.stderr or error).strip()[:_LONGEST]) from None
    except OSError as error:  # includes HTTP statuses
        raise NotTold(str(error.strerror or getattr(error, "reason", None) or error)[:_LONGEST]) from None


def _words(facts: Facts) -> str:
    reason = facts.get("AF_REASON")
    text = f"{facts.get('AF_BUILDER_ID', '')} {facts.get('AF_STATE', '')}" + (f": {reason}" if reason else "")
    return "".join(char if char.isprintable() else " " for char in text)[:_LONGEST]


def _desktop(facts: Facts, farm: str, tmux: Sequence[str]) -> None:
    title, text = f"agent-farm: {farm}", _words(facts)
    if sys.platform == "darwin":
        _run(["osascript", "-e", _BY_APPLE, title, text])
    elif shutil.which("notify-send"):
        for sign, entity in (("&", "&amp;"), ("<", "&lt;"), (">", "&gt;")):  # the body is markup
            text = text.replace(sign, entity)
        _run(["notify-send", "--app-name=agent-farm", "--", title, text])
    else:
        raise NotTold("notify-send is not installed (Debian: libnotify-bin)")


def _bell(facts: Facts, farm: str, tmux: Sequence[str]) -> None:
    rung = False
    for tty in _clients(tmux, "#{client_tty}"):
        with suppress(OSError):
            terminal = os.open(tty, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
            try:
                os.write(terminal, b"\a")
                rung = True
            finally:
                os.close(terminal)
    if not rung:
        raise NotTold("no terminal is attached to tmux")


def _message(facts: Facts, farm: str, tmux: Sequence[str]) -> None:
    """tmux would run `#(…)` in a message, but expands no option's value: the text becomes an option."""
    option = f"@af-notice-{os.getpid()}"
    clients = _clients(tmux, "#{client_name}")
    shown = ("display-message", "-d", SHOWN_MILLISECONDS)
    commands = [word for name in clients for word in (*shown, "-c", name, f"#{{{option}}}", ";")]
    if not clients:
        raise NotTold("no terminal is attached to tmux")
    text = f"{farm}: {_words(facts)} "  # a `;` at its end would be tmux's own separator
    _run([*tmux, "set-option", "-g", option, text, ";", *commands, "set-option", "-gu", option])


def _clients(tmux: Sequence[str], what: str) -> list[str]:
    return _run([*tmux, "list-clients", "-F", what]).split("\n")[:-1] if tmux else []


def _post(address: str, facts: Facts, farm: str) -> None:
    """Does not follow redirects: the message is for that address only."""
    known = {name.removesuffix("_id"): facts.get(f"AF_{name.upper()}") or None for name in _FIELDS}
    body = json.dumps({"version": 1, "farm": farm, **known, "text": f"{farm}: {_words(facts)}"})
    headers = {"Content-Type": "application/json", "User-Agent": "agent-farm"}
    try:
        login, found, _ = urlsplit(address).netloc.rpartition("@")
        if found:  # urllib would take the login for a part of the host name
            address = address.replace(f"{login}@", "", 1)
            user, _, password = map(unquote_to_bytes, login.partition(":"))
            headers["Authorization"] = f"Basic {b64encode(user + b':' + password).decode()}"
        request = urllib.request.Request(address, body.encode(), headers, method="POST")
        _opened_in_time(request)
    except urllib.error.HTTPError as error:
        raise NotTold(f"it answered {error.code}") from None
    except (ValueError, InvalidURL):  # their messages may contain a password
        raise NotTold("it is not a valid address") from None
    except HTTPException as error:
        raise NotTold(f"it does not answer like a web server ({type(error).__name__})") from None


def _opened_in_time(request: urllib.request.Request) -> None:
    """A socket's timeout restarts with each byte: a server that sends one at a time would never time out."""
    failed: list[Exception] = [TimeoutError("timed out")]

    def ask() -> None:
        try:
            with urllib.request.build_opener(_NoRedirect).open(request, timeout=SECONDS):
                failed.clear()
        except Exception as error:
            failed[:] = [error]

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    asking.join(SECONDS)
    if failed:
        raise failed.pop()  # the error holds a connection, and the list would keep it open


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(self, *args: Any, **kwargs: Any) -> None:
        return None


def _run(argv: Sequence[str]) -> str:
    done = subprocess.run(
        argv, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=True
    )
    return done.stdout


_HERE: Mapping[str, Callable[[Facts, str, Sequence[str]], None]] = {
    "desktop": _desktop,
    "bell": _bell,
    "tmux": _message,
}


def main(directory: str) -> None:
    with open(os.path.join(directory, "launch.json"), "rb") as file:
        where = json.load(file)["tell"]
    for target in where["to"]:
        try:
            tell(target, os.environ, farm=where["farm"], tmux=where["tmux"])
        except NotTold as error:
            print(f"{shown_target(target)}: {error}", file=sys.stderr)


if __name__ == "__main__":
    main(sys.argv[1])
