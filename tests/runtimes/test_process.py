"""What a CLI printed before it ended is heard, however late it is read."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import psutil
import pytest

from agent_farm.runtimes.process import Command, run_guarded
from tests.waiting import wait_until

# As Node.js does: what the pipe does not take at once is lost with the exit.
_LIKE_NODE = """
import os
os.write(1, b"%d\\n" % os.getpid())
os.set_blocking(1, False)
for part in (b"x" * 300_000 + b"\\n", b"the answer\\n"):
    while part:
        part = part[os.write(1, part):]
"""


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a pipe has the size it has")
def test_a_long_output_is_whole_though_it_is_read_after_the_exit(tmp_path: Path) -> None:
    heard: list[str] = []

    def hear_late(line: str) -> None:
        if not heard:
            wait_until(lambda: not _runs(int(line)), what="its end")
        heard.append(line)

    command = Command((sys.executable, "-c", _LIKE_NODE), tmp_path, dict(os.environ))
    ended = asyncio.run(run_guarded(command, hear_late))
    assert (ended.exit_code, len(heard), heard[-1][:12]) == (0, 3, "the answer\n"), ended.stderr


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
