"""A server with nothing but the dashboard: `serve.py ROOT FD`, the listening socket inherited."""

from __future__ import annotations

import os
import signal
import socket
import sys
from pathlib import Path

import uvicorn

from agent_farm.dashboard.app import dashboard_app


def main() -> None:
    root, descriptor = Path(sys.argv[1]), int(sys.argv[2])
    app = dashboard_app(root)
    config = uvicorn.Config(
        app, log_level="warning", access_log=True, ws="websockets-sansio", timeout_graceful_shutdown=1
    )
    server = uvicorn.Server(config)
    signal.signal(signal.SIGTERM, lambda *_: setattr(server, "should_exit", True))
    os.set_inheritable(descriptor, False)
    server.run([socket.socket(fileno=descriptor)])


if __name__ == "__main__":
    main()
