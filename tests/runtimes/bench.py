"""A shipped adapter executable at work in a repository, with a stand-in for its CLI first on PATH."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import psutil

from agent_farm.runtimes.executables.shipped import executable_path
from tests.waiting import wait_until

# Writes what it was asked into seen-*.json and does what the prompt says; it speaks as its name has it.
STAND_IN = """#!/usr/bin/env python3
import json, os, pathlib, subprocess, sys, time
name = pathlib.Path(sys.argv[0]).name

def say(**event):
    print(json.dumps(event), flush=True)

def heard_from_the_sdk():
    for line in sys.stdin:
        message = json.loads(line)
        if message["type"] == "control_request":
            answer = {"subtype": "success", "request_id": message["request_id"], "response": {}}
            say(type="control_response", response=answer)
        elif message["type"] == "user":
            content = message["message"]["content"]
            return content if isinstance(content, str) else content[0]["text"]

prompt = heard_from_the_sdk() if name == "claude" else sys.stdin.read()
place = pathlib.Path(os.environ["SEEN"])
seen = place / f"seen-{len(list(place.glob('seen-*')))}.json"
seen.write_text(json.dumps({"argv": sys.argv[1:], "prompt": prompt, "env": sorted(os.environ)}))
if name == "codex":
    say(type="thread.started", thread_id="thread-7")
if "WAIT" in prompt:
    while not (place / "go").exists():
        time.sleep(0.02)
if "HANG" in prompt:
    time.sleep(600)
for line in prompt.splitlines():
    if line.startswith("SH "):
        subprocess.run(["sh", "-c", line[3:]])
pathlib.Path("made.txt").write_text("made")
if "FAIL" in prompt:
    sys.exit(3)
if name == "codex":
    say(type="item.completed", item={"id": "1", "type": "agent_message", "text": "all done"})
    say(type="turn.completed", usage={})
elif name == "copilot":
    say(type="assistant.message", data={"content": "all done"})
    say(type="result", exitCode=0)
else:
    known = [word.partition("=")[2] for word in sys.argv if word.startswith("--session-id=")]
    facts = dict(duration_ms=1, duration_api_ms=1, num_turns=1, session_id=known[0], usage={})
    say(type="result", subtype="success", is_error=False, result="all done", **facts)
"""
# what each may have to be logged in
KEYS = {"CODEX_API_KEY": "k", "GH_TOKEN": "k", "ANTHROPIC_API_KEY": "k"}
BINARIES = {"codex-cli": "codex", "github-copilot": "copilot", "claude-mcp": "claude"}


def write_stand_in(directory: Path, name: str) -> None:
    directory.mkdir(exist_ok=True)
    (directory / name).write_text(STAND_IN)
    (directory / name).chmod(0o755)


class Bench:
    def __init__(self, repo: Path, root: Path, runtime: str) -> None:
        self.repo, self.runtime = repo, runtime
        self.seen_directory = root / "seen"
        self.seen_directory.mkdir()
        self.binaries = root / "bin"
        write_stand_in(self.binaries, BINARIES[runtime])
        self.env = {
            **os.environ,
            **KEYS,
            "PATH": f"{self.binaries}:{Path(sys.executable).parent}:{os.environ['PATH']}",
            "SEEN": str(self.seen_directory),
        }
        self.brief, self.state = root / "session_auth_brief.md", root / "lego_state_auth.json"
        self.brief.write_text("# LEGO: Authentication\n\nHandle logins.\n")

    def call(
        self, *words: str, env: dict[str, str] | None = None, cwd: Path | None = None
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [str(executable_path(self.runtime)), *words],
            cwd=cwd or self.repo,
            env=env or self.env,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )

    def without_others(self) -> dict[str, str]:
        """Where no CLI of the machine's own is found."""
        return {**self.env, "PATH": f"{self.binaries}:{Path(sys.executable).parent}:{os.defpath}"}

    def spawn(self, prompt: str) -> str:
        done = self.call("spawn", str(self.brief), str(self.state), prompt)
        assert (done.returncode, done.stderr) == (0, "")
        assert done.stdout.endswith("\n")
        assert done.stdout.count("\n") == 1
        return done.stdout.strip()

    def status(self, session: str) -> str:
        done = self.call("check_status", session)
        assert done.returncode == 0
        return done.stdout.strip()

    def wait_for(self, session: str, status: str) -> None:
        wait_until(lambda: self.status(session) == status, what=f"status {status}", timeout=120)

    def go(self) -> None:
        (self.seen_directory / "go").touch()

    def seen(self, number: int) -> dict[str, object]:
        file = self.seen_directory / f"seen-{number}.json"
        wait_until(file.exists, what=str(file))
        loaded: dict[str, object] = wait_until(lambda: _loaded(file), what="what the CLI saw")
        return loaded

    def directory(self, session: str) -> Path:
        return self.repo / ".agent-farm" / "sessions" / session

    def log(self, session: str) -> str:
        return (self.directory(session) / "adapter.log").read_text(errors="replace")

    def supervisors(self, session: str) -> list[psutil.Process]:
        return [process for process in psutil.process_iter() if _names(process, str(self.directory(session)))]

    def processes(self) -> list[psutil.Process]:
        """All that is still at work for it, wherever it went."""
        return processes_that_see(self.seen_directory)

    def load_state(self) -> dict[str, object]:
        loaded: dict[str, object] = json.loads(self.state.read_text())
        return loaded


def _names(process: psutil.Process, word: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and word in process.cmdline()
    except psutil.Error:
        return False


def processes_that_see(place: Path) -> list[psutil.Process]:
    """Those whose environment has it as SEEN."""
    return [process for process in psutil.process_iter() if _sees(process, str(place))]


def _sees(process: psutil.Process, place: str) -> bool:
    try:
        return process.status() != psutil.STATUS_ZOMBIE and process.environ().get("SEEN") == place
    except (psutil.Error, OSError):
        return False


def _loaded(file: Path) -> dict[str, object] | None:
    try:
        return dict(json.loads(file.read_text()))
    except ValueError:
        return None


@contextmanager
def made_bench(repo: Path, root: Path, runtime: str) -> Iterator[Bench]:
    root.mkdir()
    made = Bench(repo, root, runtime)
    yield made
    made.go()
    for process in made.processes():
        with suppress(psutil.NoSuchProcess):  # one takes the others along
            process.kill()
