"""The stream of changes: quick, whole after every break, and at rest while nothing happens."""

from __future__ import annotations

import http.client
import json
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import psutil

from agent_farm.disk import replace_file
from tests.conftest import Af
from tests.dashboard.conftest import report
from tests.dashboard.stage import Dashboard
from tests.gitrepo import commit_files
from tests.waiting import wait_until

Spawn = Callable[..., str]


class Stream:
    """Server-sent events as a browser reads them."""

    def __init__(self, response: http.client.HTTPResponse) -> None:
        self._response = response
        self.ids: list[int] = []

    def next(self, *wanted: str) -> Any:
        """The data of the next event of a wanted kind."""
        event: dict[str, str] = {}
        while True:
            line = self._response.readline().decode().rstrip("\n")
            if line:
                name, _, value = line.partition(": ")
                event[name] = value
            elif "event" in event:
                self.ids.append(int(event["id"]))
                if event["event"] in wanted:
                    return json.loads(event["data"])
                event = {}
            else:
                event = {}

    def until(self, matches: Callable[[dict[str, Any]], bool]) -> dict[str, Any]:
        """The first builder in a change that matches."""
        while True:
            for builder in self.next("change")["builders"]:
                if matches(builder):
                    found: dict[str, Any] = builder
                    return found


@contextmanager
def stream(dashboard: Dashboard) -> Iterator[Stream]:
    connection = http.client.HTTPConnection("127.0.0.1", dashboard.port, timeout=120)
    headers = {"Host": f"localhost:{dashboard.port}", "Authorization": f"Bearer {dashboard.token}"}
    connection.request("GET", "/api/events", headers=headers)
    try:
        yield Stream(connection.getresponse())
    finally:
        connection.close()


def test_a_snapshot_comes_first_and_then_only_what_changes(
    dashboard: Dashboard, shop: Path, idle: str
) -> None:
    with stream(dashboard) as one:
        snapshot = one.next("snapshot")
        assert [builder["id"] for builder in snapshot["builders"]] == [idle]
        assert snapshot["farm"]["name"] == shop.name
        began = time.monotonic()
        report(shop, idle, "waiting", "really?")
        changed = one.until(lambda builder: builder["status"]["state"] == "waiting")
        took = time.monotonic() - began
        assert (changed["status"]["reason"], changed["status"]["source"]) == ("really?", "hook")
        assert took < 10
        assert one.ids == sorted(one.ids)


def test_git_follows_what_happens(dashboard: Dashboard, shop: Path, idle: str) -> None:
    with stream(dashboard) as one:
        one.next("snapshot")
        one.until(lambda builder: builder["git"] is not None and builder["git"]["untracked"] == 0)
        (shop / ".builders" / idle / "new.txt").write_text("x\n")
        report(shop, idle, "working", None)
        one.until(lambda builder: builder["git"]["untracked"] == 1)


def test_tokens_and_cost_come_along(dashboard: Dashboard, shop: Path, idle: str) -> None:
    with stream(dashboard) as one:
        one.next("snapshot")
        told = {
            "version": 1,
            "run": "x",
            "input_tokens": 1200,
            "output_tokens": 30,
            "cached_tokens": 0,
            "cost": 0.5,
        }
        replace_file(shop / ".agent-farm/runs" / idle / "usage.json", json.dumps(told))
        changed = one.until(lambda builder: builder["usage"] is not None and builder["usage"]["cost"] == 0.5)
        assert changed["usage"]["input_tokens"] == 1200


def test_every_page_gets_everything_and_a_slow_one_a_snapshot(
    dashboard: Dashboard, shop: Path, idle: str
) -> None:
    with stream(dashboard) as slow, stream(dashboard) as quick:
        quick.next("snapshot")
        for number in range(30):
            report(shop, idle, "waiting", f"question {number}")
        quick.until(lambda builder: builder["status"]["reason"] == "question 29")
        slow.next("snapshot")
        slow.until(lambda builder: builder["status"]["reason"] == "question 29")


def test_removed_builders_are_named(dashboard: Dashboard, idle: str, af: Af) -> None:
    with stream(dashboard) as one:
        one.next("snapshot")
        assert af("stop", idle).returncode == 0
        one.until(lambda builder: builder["status"]["state"] == "stopped")
        assert af("prune", idle).returncode == 0
        while not (removed := one.next("change")["removed"]):
            pass
        assert removed == [idle]


def _is_ahead(number: int, builder: dict[str, Any]) -> bool:
    return builder["git"] is not None and builder["git"]["ahead"] == number


def test_what_a_person_commits_for_an_idle_builder_is_seen(
    dashboard: Dashboard, repo: Path, idle: str
) -> None:
    """It reports nothing, and no command of `af` runs: git itself is watched."""
    with stream(dashboard) as one:
        for number in (1, 2, 3):  # the looks of the beginning may still meet the first ones
            commit_files(repo / ".builders" / idle, {f"{number}.txt": "x\n"})
            one.until(partial(_is_ahead, number))


def test_nothing_runs_while_nobody_watches(dashboard: Dashboard, idle: str) -> None:
    process = psutil.Process(dashboard.pid)

    def inotify() -> int:
        fds = Path(f"/proc/{process.pid}/fd")
        found = 0
        for fd in fds.iterdir():
            with suppress(FileNotFoundError):  # closed since it was listed
                found += "inotify" in str(fd.readlink())
        return found

    with stream(dashboard) as one:
        one.next("snapshot")
        assert inotify() == 1
    wait_until(lambda: inotify() == 0, what="the watch to end")

    def used_in_a_second() -> float:
        before = process.cpu_times()
        time.sleep(1)
        after = process.cpu_times()
        return (after.user + after.system) - (before.user + before.system)

    wait_until(lambda: used_in_a_second() <= 0.05, what="a second of rest")


def test_an_open_page_does_not_hold_up_the_end_of_the_server(dashboard: Dashboard, idle: str) -> None:
    with stream(dashboard) as one:
        one.next("snapshot")
        began = time.monotonic()
        dashboard.end()
        assert time.monotonic() - began < 20


def test_without_inotify_the_files_are_looked_at(tmp_path: Path) -> None:
    import asyncio

    from agent_farm.live.file_watch import Changes, Looking
    from agent_farm.paths import FarmPaths

    paths = FarmPaths(tmp_path)
    run = paths.run("task-1")
    run.mkdir(parents=True)
    (run / "events.jsonl").write_text("{}\n")
    git_worktrees = tmp_path / ".git/worktrees"
    (git_worktrees / "task-1").mkdir(parents=True)
    paths.registry.write_text("{}")
    seen: list[Changes] = []

    async def look() -> None:
        told = asyncio.Event()

        def tell(changes: Changes) -> None:
            seen.append(changes)
            told.set()

        async def change() -> None:
            await asyncio.wait_for(told.wait(), 120)
            told.clear()

        watch = Looking(paths, git_worktrees, tell)
        watch.follow(["task-1"])
        await asyncio.sleep(0)  # its first look, which tells nothing
        (run / "events.jsonl").write_text("{}\n{}\n")
        await change()
        assert [changes.builders for changes in seen] == [{"task-1"}]
        assert not seen[0].parts
        seen.clear()
        (git_worktrees / "task-1/index").write_text("staged")
        await change()
        assert [(changes.builders, changes.trees) for changes in seen] == [(set(), {"task-1"})]
        seen.clear()
        paths.registry.write_text("{ }")
        await change()
        assert [changes.parts for changes in seen] == [{"registry"}]
        watch.close()

    asyncio.run(look())
