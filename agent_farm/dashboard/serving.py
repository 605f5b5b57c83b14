"""The program of the farm's server: the butler's routes, and the dashboard beside them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from agent_farm.butler.server import main as serve

if TYPE_CHECKING:
    from pathlib import Path

    from starlette.types import ASGIApp

    from agent_farm.butler.server_files import ServerFiles


def main(argv: list[str]) -> int:
    return serve(argv, with_dashboard)


def with_dashboard(butler: ASGIApp, root: Path, files: ServerFiles) -> ASGIApp:
    """The farm's own server shows it; a butler of the roster has a server for its sessions alone."""
    if files.butler is not None:
        return butler
    from agent_farm.dashboard.app import dashboard_app
    from agent_farm.dashboard.mount import beside

    return beside(butler, dashboard_app(root, token_file=files.token))
