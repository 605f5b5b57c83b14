"""One GNU make jobserver for all builds: a pipe of tokens, one for each additional job.

make, cargo and newer versions of ninja use it. A make that is killed takes its tokens with it; they are put
back when a build starts while no other is running.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

_TOKEN = b"+"


@contextmanager
def kept_jobs(directory: Path, tokens: int, *, refill: bool) -> Iterator[None]:
    """Keep the pipe open, for what is in it is lost when nobody does; `refill` if no build is running."""
    with ExitStack() as stack:
        if tokens:
            with suppress(OSError):
                pipe = _open(directory / "jobs")
                stack.callback(os.close, pipe)
                if refill:
                    _fill(pipe, tokens)
        yield


def shared_jobs(directory: Path, tokens: int) -> dict[str, str]:
    """The variable that points a build to the jobserver, whose descriptors it inherits; {} if `tokens` is 0.

    A build that already has make flags, or a jobserver, keeps them.
    """
    if not tokens or os.environ.get("MAKEFLAGS"):
        return {}
    try:
        read, write = _open(directory / "jobs"), _open(directory / "jobs")
    except OSError:
        return {}
    for descriptor in (read, write):
        os.set_blocking(descriptor, True)  # make expects it to block
        os.set_inheritable(descriptor, True)
    return {"MAKEFLAGS": f" -j --jobserver-auth={read},{write}"}


def _open(path: Path) -> int:
    """Open the pipe for reading and writing: opening one end would wait for the other."""
    with suppress(FileExistsError):
        os.mkfifo(path, 0o600)
    descriptor = os.open(path, os.O_RDWR | os.O_NONBLOCK | os.O_NOFOLLOW | os.O_CLOEXEC)
    if not stat.S_ISFIFO(os.fstat(descriptor).st_mode):
        os.close(descriptor)
        raise OSError(errno.EINVAL, "not a pipe", str(path))
    return descriptor


def _fill(pipe: int, tokens: int) -> None:
    with suppress(BlockingIOError):
        while os.read(pipe, 4096):
            pass
    os.write(pipe, _TOKEN * tokens)
