"""127.0.0.1 as it is: Ray takes an address of the network for it, and listens on all of them then."""

from __future__ import annotations

from typing import Any

from ray._private import services

_LOOPBACK = "127.0.0.1"


def stay_on_loopback() -> None:
    """For this process; where Ray has another way by now, a test says so."""
    names: Any = services
    usual = names.resolve_ip_for_localhost
    names.resolve_ip_for_localhost = lambda host: host if host == _LOOPBACK else usual(host)
