from __future__ import annotations

import json
from pathlib import Path

from agent_farm.runtimes import ADAPTERS
from tests.conftest import Af


def test_runtimes_are_listed_one_a_line(af: Af) -> None:
    lines = af("runtimes").stdout.splitlines()
    assert [line.split()[0] for line in lines] == list(ADAPTERS)
    assert lines[-1].endswith("usable")
    document = json.loads(af("runtimes", "--json").stdout)
    assert document["version"] == 1
    assert document["runtimes"][-1] == {
        "name": "demo",
        "title": "Demo agent",
        "version": None,
        "problem": None,
        "usable": True,
    }


def test_a_check_says_what_it_saw(af: Af) -> None:
    done = af("runtimes", "check", "demo")
    assert done.returncode == 0
    assert "ok  called the tool" in done.stdout
    assert "ok  sent the token and the session id" in done.stdout
    assert "ok  resumed the conversation" in done.stdout


def test_a_check_of_what_cannot_run_fails(af: Af, repo: Path) -> None:
    done = af("runtimes", "check", "codex", env={"PATH": "/usr/bin:/bin"})
    assert done.returncode == 1
    assert "npm install" in done.stdout
    unknown = af("runtimes", "check", "demoo")
    assert unknown.returncode == 2
    assert "hint: af runtimes check demo" in unknown.stderr
    nothing_like_it = af("runtimes", "check", "nope").stderr
    assert nothing_like_it.splitlines()[1:] == ["hint: af runtimes"]


def test_the_shipped_adapters_are_found_and_run(af: Af) -> None:
    path = af("adapter", "path", "codex-cli").stdout.strip()
    assert Path(path).is_file()
    done = af("adapter", "codex-cli", "check_status", "nobody")
    assert done.returncode == 3
    assert "no session nobody" in done.stderr
    wrong = af("adapter", "codex", "spawn")
    assert wrong.returncode == 2
    assert "hint: af adapter path codex-cli" in wrong.stderr


def test_a_spawned_builder_of_a_declared_runtime(af: Af, repo: Path) -> None:
    lego = (Path(__file__).with_name("lego.py")).read_text()
    (repo / "lego.py").write_text(lego)
    (repo / "lego.py").chmod(0o755)
    (repo / "agent_runtime.json").write_text(json.dumps({"runtimes": {"lego": {"adapter": "lego.py"}}}))
    (repo / "agent-farm.toml").write_text('[env]\npass = ["LEGO_HOME"]\n')
    env = {"LEGO_HOME": str(repo.parent / "lego-sessions")}
    done = af("spawn", "Fix auth", "--runtime", "lego", "--yes", "--json", env=env)
    assert done.returncode == 0, done.stderr
    builder = json.loads(done.stdout)["builder"]["id"]
    waited = af("wait", builder, "--for", "idle", "--timeout", "20", env=env)
    assert waited.returncode == 0, waited.stderr
    status = json.loads(af("status", "--json").stdout)["builders"][0]["status"]
    assert (status["state"], status["source"]) == ("idle", "hook")

    (repo / "agent_runtime.json").unlink()
    sent = af("send", builder, "more", env=env)
    assert sent.returncode == 2
    assert "not declared any more" in sent.stderr
    assert af("status").returncode == 0
