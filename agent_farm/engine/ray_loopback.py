"""Keeps 127.0.0.1: Ray replaces it with an address on the network, and then listens on all addresses."""

from __future__ import annotations

from typing import Any

from ray._private import services

_LOOPBACK = "127.0.0.1"


def stay_on_loopback() -> None:
    """For this process; a test fails if Ray changes this."""
    names: Any = services
    usual = names.resolve_ip_for_localhost
    names.resolve_ip_for_localhost = lambda host: host if host == _LOOPBACK else usual(host)
