"""The farm's server as its supervisor starts it, on a socket of the test's: `serve.py ROOT FD`."""

from __future__ import annotations

import os
import socket
import sys
import time
from pathlib import Path

from agent_farm.disk import file_lock
from agent_farm.server.address import ServerAddress, server_files, store_address
from agent_farm.server.serving import main as serve


def main() -> int:
    root, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    files = server_files(root)
    with socket.socket(fileno=os.dup(descriptor)) as listening:
        port = listening.getsockname()[1]
    store_address(files, ServerAddress(port, files.token, time.time()))
    with file_lock(files.lock, wait=60) as lock:
        return serve([str(root), "", str(lock), str(descriptor)])


if __name__ == "__main__":
    sys.exit(main())
