"""Keeps asking the fleet's machines, in a process of its own; the answers go into fleet.json.

A machine that hangs delays nobody: neither the other machines nor those who look at builders.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from contextlib import suppress
from threading import Event, Thread
from typing import IO

from agent_farm.descendants import end_children
from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, LockTaken
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import read_book
from agent_farm.operations.fleet.refresh import QUICK_SECONDS, asking_lock, refresh

_PAUSE_SECONDS = 3.0
_LONGEST_PAUSE_SECONDS = 30.0


def ask_late_machines(farm: Farm, hosts: Iterable[str]) -> None:
    """Ask each once, patiently; skips a machine that another process is asking."""
    threads = [Thread(target=_ask, args=(farm, host)) for host in hosts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def follow_machines(farm: Farm, until: IO[bytes]) -> None:
    """Ask every few seconds until `until` ends, which also ends a call under way."""
    over = Event()
    Thread(target=_read_out, args=(until, over), daemon=True).start()
    asking: dict[str, Thread] = {}
    while not over.is_set():
        with suppress(AgentFarmError, OSError):
            book = read_book(farm)
            for host in book.machines:
                if book.on(host) and not (host in asking and asking[host].is_alive()):
                    asking[host] = Thread(target=_follow_one, args=(farm, host, over), daemon=True)
                    asking[host].start()
        over.wait(_PAUSE_SECONDS)
    end_children(0.2)


def _follow_one(farm: Farm, host: str, over: Event) -> None:
    """Until no builder is there any more. A machine that cannot be asked is asked less and less often."""
    pause = _PAUSE_SECONDS
    while not over.is_set():
        begun = time.monotonic()
        with suppress(AgentFarmError, OSError):
            book = refresh(farm, {host}, seconds=QUICK_SECONDS)
            if host not in book.machines or not book.on(host):
                return
            if book.machine(host).is_late:
                _ask(farm, host)
        took = time.monotonic() - begun
        pause = min(_LONGEST_PAUSE_SECONDS, max(_PAUSE_SECONDS, 2 * took))
        over.wait(pause)


def _ask(farm: Farm, host: str) -> None:
    with suppress(LockTaken), file_lock(asking_lock(farm, host), wait=0):
        refresh(farm, {host})


def _read_out(stream: IO[bytes], over: Event) -> None:
    with suppress(OSError, ValueError):
        while stream.read(4096):
            pass
    over.set()
