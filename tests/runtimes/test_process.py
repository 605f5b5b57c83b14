"""What a CLI printed is heard, however late it is read; no process is left, and no file is left open."""

from __future__ import annotations

import asyncio
import os
import resource
import sys
from itertools import islice
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


# Its guard has to kill it, after the grace.
_STUBBORN = """
import os, signal, time
signal.signal(signal.SIGTERM, signal.SIG_IGN)
print(os.getpid(), flush=True)
time.sleep(600)
"""


def test_a_second_cancellation_leaves_no_process_either(tmp_path: Path) -> None:
    """As when a terminal is closed: SIGHUP to `af ask`, and SIGTERM right after it."""

    async def cancelled_twice() -> None:
        pid = asyncio.get_running_loop().create_future()
        command = Command((sys.executable, "-c", _STUBBORN), tmp_path, dict(os.environ), grace=0.5)
        run = asyncio.create_task(run_guarded(command, lambda line: pid.set_result(int(line))))
        stubborn = await pid
        run.cancel()
        await asyncio.sleep(0)
        run.cancel()
        with pytest.raises(asyncio.CancelledError):
            await run
        assert not _runs(stubborn)

    asyncio.run(cancelled_twice())


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="elsewhere it is not known what is open")
def test_a_start_for_which_there_are_too_few_files_leaves_none_open(tmp_path: Path) -> None:
    async def starts() -> None:
        before, limits = _files(), resource.getrlimit(resource.RLIMIT_NOFILE)
        free = (number for number in range(limits[0]) if number not in before)
        for first_too_many in islice(free, 8):
            resource.setrlimit(resource.RLIMIT_NOFILE, (first_too_many, limits[1]))
            try:
                ended = await run_guarded(Command(("true",), tmp_path, dict(os.environ)), lambda line: None)
            finally:
                resource.setrlimit(resource.RLIMIT_NOFILE, limits)
            assert "Too many open files" in str(ended.cannot_start)
            await asyncio.sleep(0)  # a closed transport lets go of its file in the next turn of the loop
            assert _files() == before

    asyncio.run(starts())


def _files() -> set[int]:
    with os.scandir("/proc/self/fd") as entries:
        return {int(entry.name) for entry in entries}


def _runs(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False
