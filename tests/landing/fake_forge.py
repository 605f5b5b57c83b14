"""What stands in the place of `gh` and `glab`: pull requests in a file, of branches in a bare repository.

`python fake_forge.py gh|glab PLACE ARGS…`; PLACE holds `requests.json`, `asked.log` and `remote.git`.
"""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path
from typing import Any


def main() -> int:
    name, place, kind, verb, *args = sys.argv[1:]
    directory = Path(place)
    with (directory / "asked.log").open("a") as log:
        log.write(json.dumps([name, kind, verb, *args]) + "\n")
    if (directory / "broken").exists():
        sys.stderr.write((directory / "broken").read_text())
        return 1
    file = directory / "requests.json"
    requests: list[dict[str, Any]] = json.loads(file.read_text()) if file.exists() else []
    options = dict(
        arg.removeprefix("--").split("=", 1) for arg in args if arg.startswith("--") and "=" in arg
    )
    for one in requests:
        if one["state"] == "open":
            one["head"] = tip(directory, one["branch"]) or one["head"]
    if verb == "create":
        branch = options.get("head") or options["source-branch"]
        into = options.get("base") or options["target-branch"]
        requests.append(
            {"number": len(requests) + 1, "state": "open", "branch": branch, "into": into,
             "head": tip(directory, branch), **text(options)}
        )  # fmt: skip
        print(f"https://forge.example/{len(requests)}")
    elif verb in ("edit", "update"):
        requests[int(args[0]) - 1] |= text(options)
    elif verb == "view":
        print(json.dumps(shown(name, requests[int(args[0]) - 1])))
    else:
        wanted = options.get("head") or options["source-branch"]
        print(json.dumps([shown(name, one) for one in requests if one["branch"] == wanted]))
    file.write_text(json.dumps(requests))
    return 0


def text(options: dict[str, str]) -> dict[str, str]:
    body = options.get("description") or Path(options["body-file"]).read_text()
    return {"title": options["title"], "body": body}


def tip(directory: Path, branch: str) -> str | None:
    asked = [
        "git",
        "-C",
        str(directory / "remote.git"),
        "rev-parse",
        "--verify",
        "-q",
        f"refs/heads/{branch}",
    ]
    return subprocess.run(asked, capture_output=True, text=True).stdout.strip() or None


def shown(name: str, one: dict[str, Any]) -> dict[str, Any]:
    url = f"https://forge.example/{one['number']}"
    if name == "gh":
        return {"number": one["number"], "url": url, "state": one["state"].upper(), "headRefOid": one["head"],
                "baseRefName": one["into"], "isCrossRepository": one.get("fork", False)}  # fmt: skip
    state = "opened" if one["state"] == "open" else one["state"]
    return {"iid": one["number"], "web_url": url, "state": state, "sha": one["head"],
            "target_branch": one["into"],
            "source_project_id": 2 if one.get("fork") else 1, "target_project_id": 1}  # fmt: skip


if __name__ == "__main__":
    sys.exit(main())
