#!/usr/bin/env python3
"""A small executable that follows the spawn/resume/check_status contract, for tests.

Its agent answers with what it was asked (`output` in the state) and knows [[sleep:S]], [[error]] and
[[env:NAME]]. Sessions live in LEGO_HOME.
"""

import json
import os
import re
import subprocess
import sys
import time
from pathlib import Path

HOME = Path(os.environ.get("LEGO_HOME", "/nonexistent"))


def replace(path: Path, document: object) -> None:
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(document))
    temporary.replace(path)


def start(session: str, state: str, prompt: str) -> None:
    (HOME / session).mkdir(parents=True, exist_ok=True)
    replace(HOME / session / "status.json", "pending")
    words = [sys.executable, __file__, "work", session, state, prompt]
    nothing = subprocess.DEVNULL
    subprocess.Popen(words, stdin=nothing, stdout=nothing, stderr=nothing, start_new_session=True)


def work(session: str, state: str, prompt: str) -> None:
    replace(HOME / session / "pid.json", os.getpid())
    replace(HOME / session / "status.json", "active")
    heard = HOME / session / "heard.json"
    history = [*(json.loads(heard.read_text()) if heard.exists() else []), prompt]
    replace(heard, history)
    found = dict(re.findall(r"\[\[(\w+):?(.*?)\]\]", prompt, re.DOTALL))
    seen = {name: name in os.environ for name in [found["env"]]} if "env" in found else {}
    document = {
        "lego_name": "test",
        "status": "in-progress",
        "current_substep": "coding",
        "completed_substeps": [],
    }
    replace(Path(state), document)
    time.sleep(float(found.get("sleep", 0)))
    status = "failed" if "error" in found else "completed"
    document |= {"status": status, "output": f"{prompt}\nn={len(history)}\nenv={json.dumps(seen)}"}
    replace(Path(state), document)
    replace(HOME / session / "status.json", status)


def status_of(session: Path) -> str:
    status = json.loads((session / "status.json").read_text())
    if status != "active":
        return str(status)
    try:
        os.kill(json.loads((session / "pid.json").read_text()), 0)
    except ProcessLookupError:
        again = json.loads((session / "status.json").read_text())  # it may have ended in between
        return "failed" if again == "active" else str(again)
    return status


def main(command: str, *words: str) -> int:
    if command == "work":
        work(*words)
        return 0
    if command == "spawn":
        brief, state, prompt = words
        session = f"lego-{os.getpid()}-{time.time_ns()}"
        assert Path(brief).is_file()
        assert Path(brief).is_absolute()
        assert Path(state).is_absolute()
        start(session, state, prompt)
        print(session)
        return 0
    if not (HOME / words[0] / "status.json").exists():
        print(f"no session {words[0]}", file=sys.stderr)
        return 3
    if command == "resume":
        session, state, prompt = words
        if status_of(HOME / session) in ("pending", "active"):
            print(f"session {session} is still at work", file=sys.stderr)
            return 5
        start(session, state, prompt)
        print(f"resumed {session}")
    else:
        print(status_of(HOME / words[0]))
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
