"""The server that nobody needs ends itself; one that anybody may need stays."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from agent_farm.server.address import load_address, server_files
from agent_farm.server.idle import Activity, is_idle
from agent_farm.server.launching import has_crashed, running_server
from agent_farm.server.stopping import stop_server
from agent_farm.sessions.butlers import ScheduleEntry
from agent_farm.sessions.session import SessionRequest
from tests.conftest import Af
from tests.gitrepo import commit_files, write_files
from tests.server.serving import serving
from tests.sessions.loop import in_loop
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SETTINGS = '[spawn]\nruntime = "demo"\n[server]\nidle_seconds = {}\n'


@pytest.fixture
def farm(repo: Path) -> Iterator[Path]:
    commit_files(repo, {"agent-farm.toml": SETTINGS.format(1)})
    yield repo
    stop_server(repo, now=True)


def test_the_server_that_a_run_started_ends_itself_and_is_there_again_when_needed(farm: Path, af: Af) -> None:
    assert af("run", "[[say:one]]").stdout == "one\n"
    address = load_address(server_files(farm))
    assert address is not None
    wait_until(lambda: running_server(farm) is None, what="its end")
    assert not has_crashed(farm)
    assert "Nothing has happened for a while" in af("butler", "logs").stdout
    assert af("run", "[[say:two]]").stdout == "two\n"
    again = load_address(server_files(farm))
    assert again is not None
    assert again.port == address.port


def test_a_builder_that_runs_keeps_it(farm: Path, af: Af) -> None:
    id = af("spawn", "Fix it", env={"AF_SERVER": "on"}).stdout.strip()
    started = wait_until(lambda: running_server(farm), what="the server")
    with pytest.raises(AssertionError):  # it would have ended by then
        wait_until(lambda: running_server(farm) is None, timeout=6, what="its end")
    assert af("stop", id).returncode == 0
    wait_until(lambda: running_server(farm) is None, what="its end")
    assert started is not None


class Clock:
    now = 0.0

    def __call__(self) -> float:
        return self.now


@in_loop
async def test_what_keeps_a_server(repo: Path) -> None:
    async with serving(repo) as served:
        write_files(repo, {"agent-farm.toml": SETTINGS.format(900)})
        running, clock = served.running, Clock()
        activity = Activity(clock)

        def idle() -> bool:
            return is_idle(served.butlers, activity)

        assert not idle()
        clock.now = 899.0
        assert not idle()
        clock.now = 901.0
        assert idle()
        with activity.request():  # a page that is open, a call that takes long
            clock.now = 5000.0
            assert not idle()
        assert not idle()  # it has just ended
        clock.now = 6000.0
        assert idle()
        started = await running.start(SessionRequest(prompt="[[sleep:300]]"))
        assert isinstance(started, str)
        assert not idle()
        await running.stop(started, "the test")
        assert idle()
        running.schedules.create(ScheduleEntry("daily", "0 8 * * *", "x"))
        assert not idle()
        running.schedules.update("daily", enabled=False)
        assert idle()
        write_files(repo, {"agent-farm.toml": SETTINGS.format(0)})
        assert not idle()
        write_files(repo, {"agent-farm.toml": "nonsense"})
        assert not idle()
