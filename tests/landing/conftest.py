from __future__ import annotations

from tests.farm.conftest import spawn

__all__ = ["spawn"]
