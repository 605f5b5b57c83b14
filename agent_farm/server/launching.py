"""Finds the farm's server from outside, or starts it without waiting for it.

`af spawn` uses this: it imports nothing heavy, and a running server costs one look at a lock and one read.
"""

from __future__ import annotations

import os
from pathlib import Path

from agent_farm.disk import file_lock, is_locked
from agent_farm.server.address import ServerAddress, load_address, server_files


def running_server(root: Path) -> ServerAddress | None:
    """The address of a live server that is not about to end, or None."""
    files = server_files(root)
    address = load_address(files) if is_locked(files.lock) else None
    return None if address is None or address.stopping else address


def has_crashed(root: Path) -> bool:
    """Whether there was a server that ended without being asked to."""
    files = server_files(root)
    address = load_address(files)
    return address is not None and not address.stopping and not is_locked(files.lock)


def ensure_server(root: Path) -> ServerAddress:
    """The running server, or one that is being started: its port already accepts connections."""
    address = running_server(root)
    if address:
        return address
    files = server_files(root)
    with file_lock(files.start_lock, wait=30):
        address = running_server(root)  # another process may have started it
        if address is None:
            from agent_farm.server.starting import start_server  # seldom needed

            address = start_server(root, files, os.environ)
        return address
