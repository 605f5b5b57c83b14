"""Listening sockets that only this machine can reach: one port, on IPv4 and, where it exists, on IPv6."""

from __future__ import annotations

import errno
import socket
from contextlib import suppress

HOSTS = ((socket.AF_INET, "127.0.0.1"), (socket.AF_INET6, "::1"))
BACKLOG = 512
_NO_IPV6 = (errno.EAFNOSUPPORT, errno.EADDRNOTAVAIL)


def listen(port: int) -> list[socket.socket]:
    """Listening sockets on `port` (0: one that is free on both); OSError when it is in use."""
    sockets: list[socket.socket] = []
    try:
        for family, host in HOSTS:
            bound = sockets[0].getsockname()[1] if sockets else port
            if opened := _listen(family, host, bound):
                sockets.append(opened)
        return sockets
    except OSError:
        for opened in sockets:
            opened.close()
        raise


def _listen(family: int, host: str, port: int) -> socket.socket | None:
    """None where the machine has no IPv6."""
    try:
        opened = socket.socket(family, socket.SOCK_STREAM)
    except OSError as error:
        if family == socket.AF_INET6 and error.errno in _NO_IPV6:
            return None
        raise
    try:
        opened.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if family == socket.AF_INET6:
            with suppress(OSError):
                opened.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        opened.bind((host, port))
        opened.listen(BACKLOG)
    except OSError as error:
        opened.close()
        if family == socket.AF_INET6 and error.errno in _NO_IPV6:
            return None
        raise
    return opened
