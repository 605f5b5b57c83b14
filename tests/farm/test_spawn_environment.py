"""What a builder may see: the declared environment, in the runtime, in its launcher and in tmux."""

from __future__ import annotations

import json
import os
import socket
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.gitrepo import make_repo
from tests.waiting import wait_until

pytestmark = pytest.mark.slow

SECRETS = {f"UNDECLARED_{number}": f"secret-{number}" for number in range(40)}
SECRETS |= {
    "ANTHROPIC_API_KEY": "secret-anthropic",
    "OPENAI_API_KEY": "secret-openai",
    "GEMINI_API_KEY": "secret-gemini",
    "AWS_SECRET_ACCESS_KEY": "secret-aws",
    "GITHUB_TOKEN": "secret-github",
    "SSH_AUTH_SOCK": "/secret/agent",
    "HTTPS_PROXY": "http://secret-proxy",
    "SSL_CERT_FILE": "/secret/ca.pem",
    "PYTHONPATH": "/secret/python",
    "LD_PRELOAD": "",
    "NODE_OPTIONS": "--require=/secret.js",
    "BASH_ENV": "/secret/bashrc",
    "DBUS_SESSION_BUS_ADDRESS": "unix:path=/secret/bus",
}
ALLOWED = {
    "PATH", "HOME", "USER", "SHELL", "LANG", "TZ", "TERM", "COLORTERM", "TMUX", "TMUX_PANE", "TMPDIR",
    "TRACEPARENT",
}  # fmt: skip


def environ_of(pid: int) -> dict[str, str]:
    pairs = (Path("/proc") / str(pid) / "environ").read_bytes().decode().split("\0")
    return dict(pair.split("=", 1) for pair in pairs if pair)


def processes(repo: Path, id: str) -> dict[str, int]:
    file = repo / ".agent-farm/runs" / id / "processes.json"
    wait_until(file.exists, what="the runtime")
    document: dict[str, int] = json.loads(file.read_text())
    wait_until(lambda: "AF_RUN" in environ_of(document["runtime"]), what="its environment")
    return document


def spawn(af: Af, *args: str, cwd: Path | None = None, env: dict[str, str] | None = None) -> str:
    done = af("spawn", "--runtime", "demo", *args, cwd=cwd, env=env)
    assert done.returncode == 0, done
    return done.stdout.strip()


def is_allowed(name: str) -> bool:
    return name in ALLOWED or name.startswith(("LC_", "AF_"))


@pytest.mark.parametrize("process", ["runtime", "launcher"])
def test_nothing_undeclared_is_visible(repo: Path, af: Af, process: str) -> None:
    id = spawn(af, "Fix", env=SECRETS)
    seen = environ_of(processes(repo, id)[process])
    assert sorted(name for name in seen if not is_allowed(name)) == []
    assert not [value for value in seen.values() if "secret" in value]


def test_no_process_of_the_builder_ever_holds_more(repo: Path, af: Af) -> None:
    """The tmux server and what it started, hooks and shells included."""
    id = spawn(af, "Fix", env=SECRETS)
    processes(repo, id)
    assert af("wait", id, "--for", "idle", "--timeout", "300").returncode == 0
    sockets = os.environ["TMUX_TMPDIR"].encode()
    looked_at = 0
    for entry in Path("/proc").glob("[0-9]*"):
        try:
            environment = (entry / "environ").read_bytes()
        except OSError:
            continue
        ours = b"TMUX=" + sockets in environment or b"TMUX_TMPDIR=" + sockets in environment
        if ours and int(entry.name) != os.getpid():
            looked_at += 1
            assert b"secret-" not in environment, (entry / "cmdline").read_bytes()
    assert looked_at >= 3


def test_the_values_do_not_stay_on_disk(repo: Path, af: Af) -> None:
    af("config", "set", "env.pass", "UNDECLARED_1")
    id = spawn(af, "Fix", env=SECRETS)
    processes(repo, id)
    for path in (repo / ".agent-farm").rglob("*"):
        if path.is_file():
            assert b"secret-" not in path.read_bytes(), path


def test_env_pass_lets_a_variable_through(repo: Path, af: Af) -> None:
    af("config", "set", "env.pass", "UNDECLARED_1,NOT_SET")
    seen = environ_of(processes(repo, spawn(af, "Fix", env=SECRETS))["runtime"])
    assert seen["UNDECLARED_1"] == "secret-1"
    assert "NOT_SET" not in seen
    assert sorted(name for name in seen if not is_allowed(name)) == ["UNDECLARED_1"]


def test_a_name_that_is_no_name_is_refused(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text('[env]\npass = ["A B"]\n')
    done = af("spawn", "--runtime", "demo", "Fix")
    assert done.returncode == 1
    assert "'A B' is not the name of an environment variable" in done.stderr


def test_a_builder_knows_who_it_is(repo: Path, af: Af) -> None:
    id = spawn(af, "Fix")
    (builder,) = json.loads(af("status", "--json").stdout)["builders"]
    seen = environ_of(processes(repo, id)["runtime"])
    assert {name: seen[name] for name in sorted(seen) if name.startswith("AF_") and name != "AF_SERVER"} == {
        "AF_BRANCH": f"builder/{id}",
        # the pane has no XDG_*: without these an `af` in it would keep consent and ports elsewhere
        "AF_CONFIG_HOME": os.environ["XDG_CONFIG_HOME"],
        "AF_STATE_HOME": os.environ["XDG_STATE_HOME"],
        "AF_BUILDER_ID": id,
        "AF_PORT": str(builder["ports"][0]),
        "AF_ROOT": str(repo),
        "AF_RUN": builder["run"],
        "AF_RUN_DIR": str(repo / ".agent-farm/runs" / id),
        "AF_WORKTREE": str(repo / ".builders" / id),
    }


def test_programs_are_never_looked_for_where_a_builder_happens_to_be(repo: Path, af: Af) -> None:
    id = spawn(af, "Fix", env={"PATH": f".:node_modules/.bin::{os.environ['PATH']}:"})
    assert environ_of(processes(repo, id)["runtime"])["PATH"] == os.environ["PATH"]


def test_the_terminal_is_the_panes_and_not_the_callers(repo: Path, af: Af) -> None:
    socket = f"{os.environ['TMUX_TMPDIR']}/tmux-{os.getuid()}/default"
    spawn(af, "Another, so that the server is there")
    caller = {"TERM": "dumb", "TMUX": f"{socket},1,77", "TMUX_PANE": "%77", "COLORTERM": "caller"}
    seen = environ_of(processes(repo, spawn(af, "Fix", env=caller))["runtime"])
    assert seen["TERM"].startswith(("tmux", "screen"))
    assert seen["TMUX"].startswith(f"{socket},")
    assert seen["TMUX"] != caller["TMUX"]
    assert seen["TMUX_PANE"] != "%77"
    assert seen.get("COLORTERM") != "caller"


def test_a_builder_that_spawns_does_not_hand_its_identity_on(repo: Path, af: Af) -> None:
    first = spawn(af, "One")
    inherited = environ_of(processes(repo, first)["runtime"])
    second = spawn(af, "Two", env=inherited)
    assert environ_of(processes(repo, second)["runtime"])["AF_BUILDER_ID"] == second


def test_a_running_server_does_not_decide_what_a_later_builder_sees(repo: Path, af: Af) -> None:
    """tmux keeps the environment it was started in, and would give it to every pane."""
    spawn(af, "One", env={"LC_MARK": "of the first", "TZ": "UTC"})
    id = spawn(af, "Two", env={"LC_MARK": "of the second"})
    seen = environ_of(processes(repo, id)["runtime"])
    assert seen["LC_MARK"] == "of the second"
    assert "TZ" not in seen


# Ports


def ports(af: Af, cwd: Path | None = None) -> dict[str, list[int]]:
    return {b["id"]: b["ports"] for b in json.loads(af("status", "--json", cwd=cwd).stdout)["builders"]}


def test_each_builder_has_a_block_of_its_own(repo: Path, af: Af, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    for cwd in (repo, repo, other, other):
        spawn(af, "Fix", cwd=cwd)
    blocks = [*ports(af).values(), *ports(af, other).values()]
    assert [len(block) for block in blocks] == [10] * 4
    assert all(block == list(range(block[0], block[0] + 10)) for block in blocks)
    assert len({port for block in blocks for port in block}) == 40


def test_a_port_that_is_listened_on_is_not_given_away(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text("[limits]\nmax_builders = 9\n[ports]\nper_builder = 3\n")
    (repo / "codev/specs").mkdir(parents=True)
    (repo / "codev/specs/0009-login.md").write_text("# Login\n")
    _commit_all(repo)
    spawn(af, "-p", "9")
    (first,) = ports(af).values()
    _forget(af, "0009")
    with socket.create_server(("127.0.0.1", first[1])):
        spawn(af, "-p", "9")
        (second,) = ports(af).values()
    assert set(first).isdisjoint(second)


def test_the_block_is_stable_for_an_id(repo: Path, af: Af) -> None:
    (repo / "codev/specs").mkdir(parents=True)
    (repo / "codev/specs/0009-login.md").write_text("# Login\n")
    _commit_all(repo)
    spawn(af, "-p", "9")
    before = ports(af)
    _forget(af, "0009")
    assert ports(af) == {}
    spawn(af, "Something else")
    spawn(af, "-p", "9")
    assert ports(af)["0009"] == before["0009"]


def test_no_ports_when_none_are_wanted(repo: Path, af: Af) -> None:
    (repo / "agent-farm.toml").write_text("[ports]\nper_builder = 0\n")
    id = spawn(af, "Fix")
    assert ports(af) == {id: []}
    assert "AF_PORT" not in environ_of(processes(repo, id)["runtime"])


def _commit_all(repo: Path) -> None:
    from tests.gitrepo import git

    git(repo, "add", "-A")
    git(repo, "commit", "-q", "-m", "all")


def _forget(af: Af, id: str) -> None:
    assert af("wait", id, "--for", "idle", "--timeout", "300").returncode == 0
    assert af("stop", id).returncode == 0
    done = af("prune", id, "--discard-commits", "--discard-changes")
    assert done.returncode == 0, done
