"""Runs a git whose output somebody else decides, and that must not fill the memory."""

from __future__ import annotations

import os
import threading
from pathlib import Path
from typing import Unpack

from agent_farm.errors import AgentFarmError
from agent_farm.git.git_process import Argument, Options, ask_git, command_at, raise_git_error


class TooLong(AgentFarmError):
    """git printed more than is safe to read: a few objects can name any number of files."""


def run_git_bounded(cwd: Path, *args: Argument, most_bytes: int, **options: Unpack[Options]) -> bytes:
    """stdout; TooLong, and git ended, if that is more than `most_bytes`."""
    read, write = os.pipe()
    said = list[bytes]()
    with open(write, "wb") as sink, open(read, "rb") as source:

        def listen() -> None:
            said.append(source.read(most_bytes + 1))
            source.close()  # git is ended by SIGPIPE when it says more

        listener = threading.Thread(target=listen)
        listener.start()
        options["output"] = sink
        try:
            status, _, stderr = ask_git(cwd, *args, **options)
        finally:
            sink.close()
            listener.join()
    if len(said[0]) > most_bytes:
        raise TooLong(f"git {args[command_at(args)]} says more than {most_bytes} bytes")
    if status:
        raise_git_error(args, status, stderr)
    return said[0]
