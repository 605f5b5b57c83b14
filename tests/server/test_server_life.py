"""The server as a process: started without waiting, port kept, back after a crash, gone when asked."""

from __future__ import annotations

import json
import os
import signal
import socket
import stat
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx2
import psutil
import pytest
from msgspec.structs import replace

from agent_farm.disk import file_lock
from agent_farm.errors import AgentFarmError, DamagedFile, TimedOut
from agent_farm.loopback import listen
from agent_farm.paths import user_state_directory
from agent_farm.ports import reserve_ports
from agent_farm.runtimes import ADAPTERS, get_adapter
from agent_farm.server import stopping
from agent_farm.server.address import ServerAddress, load_address, server_files, store_address
from agent_farm.server.launching import ensure_server, has_crashed, running_server
from agent_farm.server.stopping import stop_server
from tests.conftest import Af
from tests.gitrepo import commit_files, make_repo
from tests.sessions.records import open_sessions, started, triggered
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

HEAVY = ("asyncio", "logging", "sqlite3", "pydantic", "mcp", "starlette", "cryptography", "http", "email")


def health(address: ServerAddress, host: str = "localhost") -> dict[str, object]:
    with urllib.request.urlopen(f"http://{host}:{address.port}/healthz", timeout=120) as response:
        found: dict[str, object] = json.load(response)
        return found


def up(root: Path) -> ServerAddress:
    def ready() -> ServerAddress | None:
        address = running_server(root)
        return address if address and address.pid else None

    found = wait_until(ready, what="the server")
    assert found is not None
    return found


def has_ended(pid: int | None) -> bool:
    """A zombie has: this process started it and does not wait for it."""
    try:
        return psutil.Process(pid).status() == psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return True


def test_a_caller_that_comes_before_the_server_is_up_is_served(farm: Path) -> None:
    address = ensure_server(farm)
    assert address.pid is None
    assert health(address)["accepting"] is True
    assert health(address, "127.0.0.1") == health(address, "[::1]")
    files = server_files(farm)
    for private in (files.token, files.address, files.log):
        assert stat.S_IMODE(private.stat().st_mode) == 0o600
    document = json.loads(files.address.read_text())
    assert set(document) >= {"version", "pid", "port", "token_file", "started_at"}
    assert document["token_file"] == str(files.token)
    again = ensure_server(farm)
    assert (again.port, again.supervisor) == (address.port, address.supervisor)


def test_twenty_at_once_start_one_server(farm: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agent_farm.server.launching import ensure_server;"
        "print(ensure_server(Path(sys.argv[1])).port)"
    )

    def start(_: int) -> str:
        return subprocess.run(
            [sys.executable, "-c", code, str(farm)], capture_output=True, text=True, check=True, timeout=60
        ).stdout

    with ThreadPoolExecutor(20) as pool:
        ports = set(pool.map(start, range(20)))
    assert len(ports) == 1
    up(farm)
    servers = [
        process
        for process in psutil.process_iter(["cmdline"])
        if str(farm) in (process.info["cmdline"] or [])
        and "supervisor.py" not in str(process.info["cmdline"])
    ]
    assert len(servers) == 1


def test_nothing_heavy_is_imported_on_the_way(farm: Path) -> None:
    code = (
        "import sys; from pathlib import Path; from agent_farm.server.launching import ensure_server;"
        f"ensure_server(Path(sys.argv[1])); print([n for n in {HEAVY!r} if n in sys.modules])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(farm)], capture_output=True, text=True, check=True, timeout=60
    )
    assert done.stdout.strip() == "[]"


def test_it_comes_back_after_a_crash_on_the_same_port(farm: Path) -> None:
    ensure_server(farm)
    before = up(farm)
    assert before.pid is not None
    os.kill(before.pid, signal.SIGKILL)
    assert health(before)["accepting"] is True  # held in the queue meanwhile, not refused
    after = wait_until(lambda: up(farm) if up(farm).pid != before.pid else None, what="a new server")
    assert (after.port, after.supervisor) == (before.port, before.supervisor)


def test_with_its_supervisor_dead_too_the_next_command_brings_it_back(farm: Path) -> None:
    ensure_server(farm)
    before = up(farm)
    for pid in (before.supervisor, before.pid):
        assert pid is not None
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: running_server(farm) is None, what="the end of the server")
    after = ensure_server(farm)
    assert after.port == before.port
    assert health(after)["accepting"] is True


def test_without_its_supervisor_it_names_nobody_in_its_place(farm: Path) -> None:
    """Who adopts orphans may be the person's session manager, or process 1."""
    ensure_server(farm)
    before = up(farm)
    assert before.pid is not None
    assert before.supervisor is not None
    os.kill(before.supervisor, signal.SIGKILL)
    server = psutil.Process(before.pid)
    wait_until(lambda: server.ppid() != before.supervisor, what="the end of the supervisor")
    server.terminate()
    wait_until(lambda: running_server(farm) is None, what="the end of the server")
    known = load_address(server_files(farm))
    assert known is not None
    assert (known.pid, known.supervisor) == (before.pid, None)
    assert health(ensure_server(farm))["accepting"] is True


def test_a_number_that_is_another_process_by_now_is_not_signalled(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stopping, "PATIENCE", 0.5)
    files = server_files(repo)
    with subprocess.Popen(["sleep", "600"]) as other, file_lock(files.lock) as lock:
        os.pwrite(lock, str(other.pid).encode(), 0)
        store_address(files, ServerAddress(9, files.token, 0.0, pid=other.pid, supervisor=other.pid))
        with pytest.raises(TimedOut):
            stop_server(repo, now=True)
        assert other.poll() is None
        other.kill()


def test_stop_ends_it_and_the_port_is_kept_for_the_farm(farm: Path) -> None:
    ensure_server(farm)
    before = up(farm)
    assert before.pid is not None
    assert stop_server(farm)
    assert running_server(farm) is None
    wait_until(lambda: has_ended(before.pid), what="the end of the process")
    with pytest.raises(urllib.error.URLError):
        health(before)
    assert not stop_server(farm)
    (user_state_directory() / "ports.json").unlink()  # `server.json` says so, too
    assert ensure_server(farm).port == before.port
    stop_server(farm)
    server_files(farm).address.unlink()
    assert ensure_server(farm).port == before.port


def test_two_farms_have_two_ports_and_a_taken_port_is_left_alone(farm: Path, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other", {"agent-farm.toml": '[spawn]\nruntime = "demo"\n'})
    first, second = ensure_server(farm), ensure_server(other)
    try:
        assert first.port != second.port
        assert health(first)["butler"] != health(second)["butler"]
        stop_server(other)
        commit_files(other, {"agent-farm.toml": f"[server]\nport = {first.port}\n"})
        with pytest.raises(AgentFarmError, match=f"Port {first.port} is taken"):
            ensure_server(other)
    finally:
        stop_server(other, now=True)


def test_a_start_that_fails_keeps_no_port(farm: Path) -> None:
    """`af mcp` asks for the server again and again, and tells why there is none."""
    own, (port,) = "codev/roster/{}/butler.toml", reserve_ports(farm, "(test)", 1)
    with socket.create_server(("127.0.0.1", 0)) as somebody:
        taken = somebody.getsockname()[1]
        ports = {"health": port, "mail": taken}
        commit_files(farm, {own.format(name): f"[butler]\nport = {its}\n" for name, its in ports.items()})
        with pytest.raises(AgentFarmError, match=f"Port {taken} is taken") as refused:
            ensure_server(farm)
        for opened in listen(port):
            opened.close()
    assert refused.tb  # which keeps alive what was not closed


def test_its_environment_is_clean(farm: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for number in range(50):
        monkeypatch.setenv(f"SECRET_{number}", "leak")
    monkeypatch.setenv("TMUX", "/tmp/x,1,0")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    ensure_server(farm)
    address = up(farm)
    for pid in (address.pid, address.supervisor):
        seen = psutil.Process(pid).environ()
        assert not [name for name in seen if name.startswith("SECRET_")]
        assert "TMUX" not in seen
        assert seen["ANTHROPIC_API_KEY"] == "key"


def test_every_variable_that_a_runtime_reads_reaches_the_server(
    farm: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = {name for runtime in ADAPTERS for name in get_adapter(runtime).cli.every_variable}
    names |= {"HTTPS_PROXY", "no_proxy", "SSL_CERT_FILE"}  # of what `ask_sources` starts
    for name in names:
        monkeypatch.setenv(name, str(farm))
    ensure_server(farm)
    seen = psutil.Process(up(farm).pid).environ()
    assert names - seen.keys() == set()
    assert "CLAUDE_CODE_USE_BEDROCK" in names


def test_requests_without_a_login_leave_nothing_in_the_log(farm: Path) -> None:
    ensure_server(farm)
    address = up(farm)
    log = server_files(farm).log
    before = log.read_text()
    for path in ("/api/x%0a2026-01-01 INFO forged", "/mcp%0aforged", "/x%1b[31mforged"):
        answer = httpx2.get(f"http://localhost:{address.port}{path}", follow_redirects=False)
        assert answer.status_code in (303, 401, 404)
    httpx2.post(f"http://localhost:{address.port}/mcp", headers={"Host": "forged"})
    assert log.read_text() == before


def test_a_file_in_the_repository_cannot_stand_in_for_a_module(farm: Path) -> None:
    for name in ("asyncio.py", "sqlite3.py", "json.py", "agent_farm/__init__.py"):
        (farm / name).parent.mkdir(exist_ok=True)
        (farm / name).write_text("raise SystemExit(7)\n")
    assert health(ensure_server(farm))["accepting"] is True


def test_a_farm_that_is_deleted_takes_its_server_along(farm: Path) -> None:
    ensure_server(farm)
    address = up(farm)
    server_files(farm).address.unlink()
    wait_until(lambda: has_ended(address.pid), what="the end of the server")
    wait_until(lambda: has_ended(address.supervisor), what="the end of the supervisor")


def test_a_newer_address_file_is_refused_by_name(farm: Path) -> None:
    files = server_files(farm)
    files.address.parent.mkdir()
    files.address.write_text('{"version": 9}')
    with pytest.raises(DamagedFile, match=r"server\.json"):
        ensure_server(farm)
    assert files.address.read_text() == '{"version": 9}'
    files.address.unlink()


def test_kill_9_of_everything_leaves_a_truthful_record_and_no_process(farm: Path) -> None:
    running = started(farm, "[[child:300]] [[sleep:300]]")
    queued = started(farm, "[[say:never]]")
    log = open_sessions(farm)
    wait_until(lambda: log.get(running)["state"] == "running", what="the session")
    mine = wait_until(lambda: _processes_of(running), what="its processes")
    address = up(farm)
    for pid in (address.supervisor, address.pid):
        assert pid  # 0 would be all of us
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: not any(process.is_running() for process in mine), what="the end of its processes")
    wait_until(lambda: running_server(farm) is None, what="the end of the server")
    log = open_sessions(farm)
    assert log.get(running)["state"] == "interrupted"
    assert log.get(queued)["state"] == "interrupted"
    assert log.get(queued)["started_at"] is None
    next_one = triggered(farm, "[[say:next]]", wait=True).result
    assert next_one is not None
    assert next_one.output == "next"
    assert {log.get(running)["state"], log.get(queued)["state"]} == {"interrupted"}
    assert len(log.find(limit=0)) == 3


def _processes_of(session: str) -> list[psutil.Process]:
    found = []
    for process in psutil.process_iter():
        try:
            if process.environ().get("AF_SESSION") == session:
                found.append(process)
        except psutil.Error:
            continue
    return found if len(found) >= 2 else []


def test_stop_cancels_what_does_not_end_and_says_so(farm: Path) -> None:
    session = started(farm, "[[sleep:300]]")
    log = open_sessions(farm)
    wait_until(lambda: log.get(session)["state"] == "running", what="the session")
    assert stop_server(farm)
    record = log.get(session)
    assert (record["state"], record["error"]) == ("cancelled", "Cancelled: the butler shut down")


def test_the_commands(farm: Path, af: Af) -> None:
    def done(*words: str, code: int = 0, **more: str) -> str:
        finished = af(*words, **more)
        assert finished.returncode == code, (words, finished.stdout, finished.stderr)
        return finished.stdout

    assert "not running" in done("butler", "status", code=1)
    assert json.loads(done("butler", "start", "--json"))["started"] is True
    status = json.loads(done("butler", "status", "--json"))["server"]
    assert status["running"]
    assert status["pid"]
    assert done("run", "[[say:hello]]") == "hello\n"
    result = json.loads(done("trigger", "--json", "[[say:there]]"))["result"]
    assert (result["success"], result["output"]) == (True, "there")
    session = done("trigger", "--no-wait", "[[say:later]]").strip()
    log = open_sessions(farm)
    wait_until(lambda: log.get(session)["state"] == "completed", what="the session")
    assert len(json.loads(done("sessions", "--json"))["sessions"]) == 3
    assert "later" in done("sessions", session[:8])
    assert "Serving" in done("butler", "logs")
    assert done("butler", "stop") == "stopped\n"
    assert running_server(farm) is None
    failed = json.loads(done("run", "--json", "[[error:overloaded]]", code=1))["result"]
    assert failed["success"] is False
    assert running_server(farm) is not None  # `af run` starts one when there is none


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_ctrl_c_on_af_run_cancels_the_session(farm: Path, number: signal.Signals) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "run", "[[sleep:300]]"],
        cwd=farm,
        stderr=subprocess.PIPE,
        text=True,
    )
    log = open_sessions(farm)
    (record,) = wait_until(lambda: log.find(states=["running"]), what="the session")
    process.send_signal(number)
    assert process.wait(30) == 130
    assert process.stderr is not None
    assert "Traceback" not in process.stderr.read()
    process.stderr.close()
    assert log.get(record["id"])["state"] == "cancelled"
    assert not _processes_of(record["id"])


def test_one_server_runs_the_sessions_of_every_butler_each_with_a_state_of_its_own(
    farm: Path, af: Af
) -> None:
    own, (port,) = "codev/roster/{}/butler.toml", reserve_ports(farm, "(test)", 1)
    commit_files(farm, {own.format("health"): f"[butler]\nport = {port}\n", own.format("mail"): ""})
    prompt = '[[mcp:state_set {"key": "who", "value": "health"}]]'
    assert af("run", "--butler", "health", prompt).returncode == 0
    address = up(farm)
    assert health(replace(address, port=port)) == health(address)
    seen = json.loads(af("run", "--json", "--butler", "mail", "[[mcp:state_list {}]]").stdout)["result"]
    assert json.loads(seen["tool_calls"][0]["result"])["state"] == {}
    assert up(farm).pid == address.pid
    found = json.loads(af("sessions", "--json", "--butler", "mail").stdout)["sessions"]
    assert [record["butler"] for record in found] == ["mail"]
    assert af("run", "--butler", "nobody", "x").returncode == 1


def test_a_server_that_crashed_whole_is_told_from_one_that_was_stopped(farm: Path) -> None:
    ensure_server(farm)
    before = up(farm)
    assert not has_crashed(farm)
    for pid in (before.supervisor, before.pid):
        assert pid  # 0 would be all of us
        os.kill(pid, signal.SIGKILL)
    wait_until(lambda: has_crashed(farm), what="the crash to be seen")
    ensure_server(farm)
    assert up(farm).port == before.port
    stop_server(farm)
    assert not has_crashed(farm)


def test_kill_9_of_af_run_leaves_a_truthful_record_and_no_process(farm: Path) -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "run", "[[child:300]] [[sleep:300]]"],
        cwd=farm,
        stderr=subprocess.DEVNULL,
    )
    log = open_sessions(farm)
    (record,) = wait_until(lambda: log.find(states=["running"]), what="the session")
    mine = wait_until(lambda: _processes_of(record["id"]), what="its processes")
    process.kill()
    process.wait(30)
    wait_until(lambda: not any(one.is_running() for one in mine), what="the end of its processes")
    wait_until(lambda: log.get(record["id"])["state"] == "cancelled", what="the record")
    assert log.get(record["id"])["error"] == "Cancelled: the caller went away"
