"""Threads that read by the same new types at the same moment."""

from __future__ import annotations

import subprocess
import sys

import pytest

_READ = """
import json, sys, threading, types
import msgspec
from agent_farm.typed import make_known
sys.setswitchinterval(1e-6)
known = make_known if sys.argv[1] == "known" else lambda kind: None
TEXT = '''
from __future__ import annotations
import msgspec
class C(msgspec.Struct):
    a: int
    b: tuple[int, ...]
    c: dict[str, int]
class B(msgspec.Struct):
    x: C
    y: dict[str, C]
    z: C | None = None
class A(msgspec.Struct):
    p: B
    q: tuple[B, ...]
'''
c = {"a": 1, "b": [1], "c": {"x": 1}}
b = {"x": c, "y": {"k": c}}
for number in range(600):
    module = types.ModuleType(f"m{number}")
    sys.modules[module.__name__] = module
    exec(TEXT, module.__dict__)
    begin = threading.Barrier(6)
    def read(kind, document):
        begin.wait()
        known(kind)
        msgspec.convert(document, kind)
        msgspec.json.decode(json.dumps(document), type=kind)
    pairs = ((module.A, {"p": b, "q": [b]}), (module.B, b))
    threads = [threading.Thread(target=read, args=pairs[n % 2]) for n in range(6)]
    for one in threads: one.start()
    for one in threads: one.join()
"""


@pytest.mark.slow
def test_types_are_made_known_by_one_thread_alone() -> None:
    def read(how: str) -> int:
        return subprocess.run([sys.executable, "-c", _READ, how], check=False, capture_output=True).returncode

    assert [read("known") for _ in range(3)] == [0, 0, 0]
    if all(read("unknown") == 0 for _ in range(6)):
        pytest.skip("msgspec makes types known to itself without a crash, here at least")
