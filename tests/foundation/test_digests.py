from __future__ import annotations

import hashlib
import subprocess
import sys
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as some

from agent_farm.digests import sha256


@given(some.binary())
def test_it_is_sha256(content: bytes) -> None:
    assert sha256(content).hexdigest() == hashlib.sha256(content).hexdigest()


def test_openssl_is_not_loaded() -> None:
    code = "import sys, agent_farm.digests; print(*sys.modules)"
    root = Path(__file__).parents[2]
    done = subprocess.run(
        [sys.executable, "-S", "-c", code], cwd=root, capture_output=True, text=True, check=True
    )
    assert {"hashlib", "_hashlib"} & set(done.stdout.split()) == set()
