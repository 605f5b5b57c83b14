"""Prints how large the house is, and how long the ways through it are: `python tools/house.py`.

Of another checkout: `python tools/house.py PATH`, with the python of that checkout's environment.
"""

from __future__ import annotations

import ast
import json
import os
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator, Mapping
from fnmatch import fnmatch
from pathlib import Path

CLIS = ("claude", "codex", "gemini", "copilot", "opencode")

# What the files of each room are for, by the first name that fits; what is left was there from the start.
PARTS: dict[str, dict[str, str]] = {
    "landing: queue, proofs, contest, pull requests": {
        "landing": "*",
        "operations": "land* check compare keep pr pr_text sync conflicts",
        "cli": "land contest pr",
        "builders": "proof pull_request",
        "farm": "proofs declared_checks landing_places",
        "forge": "pull_requests",
        "git": "settling advancing landing_hooks index_lock pushing merge_trees patches remotes",
    },
    "board and review": {
        "board": "*",
        "review": "*",
        "live": "*",
        "operations": "review*",
        "cli": "review board",
        "tmux": "way_back",
    },
    "ready worktrees, builds in turn, costs": {
        "governor": "*",
        "farm": "builds ready_worktrees checkout_cost",
        "operations": "pool costs",
        "cli": "costs",
        "builders": "spending",
        "git": "pool_slots",
    },
    "builders on other machines": {
        "fleet": "*",
        "engine": "*",
        "ssh": "*",
        "operations/fleet": "*",
        "operations/for_home": "*",
        "sessions": "other_machines",
        "cli": "fleet forward",
        "git": "other_machine packs checkpoint*",
        "farm": "checkpointing placing_again",
        "runtimes": "conversation_files",
    },
    "specs, trackers, editors, ACP, coming and going, queues": {
        "forge": "*",
        "runtimes": "acp*",
        "server": "editor*",
        "operations": "spawn_items spawn_protocol spawn_several queue importing eject uninstall notify",
        "cli": "editor moving serve man complet* queued",
        "builders": "check_list protocol_file templates",
        "farm": "from_codev codev_config ignore_lines fixed_port waiting",
        "git": "carrying",
        "pane": "tell",
    },
    "nothing lost, nothing believed": {
        "": "own_files inside printable consent shield descendants",
        "git": "own_places checkout entries keeping landed landed_answers half_made left_locks nested"
        " registrations reconnecting worktree_removal",
        "farm": "home healing evidence guarded_removal removal restoring trash deletion tool_made",
        "farm/checks": "*",
        "operations": "doctor prune restore expire",
        "cli": "prune restore forgotten",
    },
    "headless sessions and the server": {
        "sessions": "*",
        "server": "*",
        "butler": "*",
        "operations": "trigger sessions schedule state credentials butler served farms",
        "cli": "run sessions schedule butler butler_state dash",
    },
    "AI CLIs": {"runtimes": "*", "": "usage_limits", "operations": "runtimes", "cli": "runtimes"},
    "local context": {"ask": "*", "operations": "sources", "cli": "ask"},
    "builders: spawn, status, send, stop, resume": {"*": "*"},
}

# Runs `af` in this process and writes down which of the package's functions it passes, in which modules.
TRACED = """
import inspect, json, sys
seen = set()
def look(frame, event, argument):
    code = frame.f_code
    is_function = code.co_flags & inspect.CO_OPTIMIZED  # the body of a class is none
    if event == "call" and is_function and "/agent_farm/" in code.co_filename and code.co_name[0] != "<":
        seen.add((code.co_filename, code.co_qualname))
from agent_farm.cli.main import run
sys.setprofile(look)
run(sys.argv[2:])
sys.setprofile(None)
with open(sys.argv[1], "w") as file:
    json.dump([len({name for name, _ in seen}), len(seen)], file)
"""


def main() -> None:
    root = Path(sys.argv[1] if len(sys.argv) > 1 else Path(__file__).parents[1]).resolve()
    files = sorted((root / "agent_farm").rglob("*.py"))
    trees = {file: ast.parse(file.read_bytes()) for file in files}
    lines = {file: len(file.read_text().splitlines()) for file in files}
    with tempfile.TemporaryDirectory() as scratch:
        (modules, functions), calls = ways(root, Path(scratch))
    names = Counter(file.name for file in files if not file.name.startswith("__"))
    rows = {
        "lines of Python": sum(lines.values()),
        "files": len(files),
        "files of more than 300 lines": sum(count > 300 for count in lines.values()),
        "functions of more than 50 lines": sum(
            length > 50 for tree in trees.values() for length in lengths(tree)
        ),
        "modules and functions of one spawn": f"{modules} and {functions}",
        "git processes: spawn / merge / prune / merge --prune": " / ".join(map(str, calls)),
        "basenames used more than once": sum(count > 1 for count in names.values()),
        "imports inside functions": sum(map(late_imports, trees.values())),
        "files that name a CLI, the median CLI": sorted(naming(files, cli) for cli in CLIS)[2],
    }
    width = max(map(len, (*rows, *PARTS)))
    for name, value in rows.items():
        print(f"{name:{width}}  {value}")
    print("\nlines, by what they are for")
    parts = lines_of_parts(
        {str(file.relative_to(root / "agent_farm")): count for file, count in lines.items()}
    )
    for name in PARTS:
        print(f"{name:{width}}  {parts[name]}")


def lines_of_parts(lines: Mapping[str, int]) -> Counter[str]:
    """A pattern that fits no file is out of date."""
    patterns = [(part, one) for part, rooms in PARTS.items() for one in patterns_of(rooms)]
    if idle := [one for _, one in patterns if not any(fnmatch(file, one) for file in lines)]:
        sys.exit(f"tools/house.py: nothing fits {', '.join(idle)}")
    found = Counter[str]()
    for file, count in lines.items():
        found[next(part for part, one in patterns if fnmatch(file, one))] += count
    return found


def patterns_of(rooms: Mapping[str, str]) -> Iterator[str]:
    for room, names in rooms.items():
        place = f"{room}/" if room else ""
        for name in names.split():
            yield "*" if room == "*" else f"{place}{name}" + ("" if name.endswith("*") else ".py")


def lengths(tree: ast.Module) -> Iterator[int]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield (node.end_lineno or node.lineno) - node.lineno + 1


def late_imports(tree: ast.Module) -> int:
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)]
    found = {
        node
        for function in functions
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom)
    }
    return len(found)


def naming(files: list[Path], cli: str) -> int:
    return sum(cli in file.read_text().lower() for file in files)


def ways(root: Path, scratch: Path) -> tuple[tuple[int, int], list[int]]:
    """One spawn is followed function by function; of four commands git is counted."""
    farm = Farm(root, scratch)
    try:
        farm.af("butler", "start")
        passed = farm.follow("spawn", "--task", "follow this")
        spawned = farm.counted("spawn", "--task", "one", "--json")
        first = farm.work(json.loads(farm.said)["builder"])
        merged = farm.counted("merge", first)
        farm.af("stop", first)
        pruned = farm.counted("prune", first)
        farm.af("spawn", "--task", "two", "--json")
        second = farm.work(json.loads(farm.said)["builder"])
        farm.af("stop", second)
        return passed, [spawned, merged, pruned, farm.counted("merge", "--prune", second)]
    finally:
        farm.close()


class Farm:
    """A repository with private homes, sockets and a git that is counted."""

    def __init__(self, root: Path, scratch: Path) -> None:
        self.repo, self.count, self.said = scratch / "repo", scratch / "count", ""
        shims, self.scratch = scratch / "bin", scratch
        shims.mkdir()
        git = subprocess.run(["which", "git"], check=True, capture_output=True, text=True).stdout.strip()
        # what runs in a pane asks git for itself, not for the command that is counted
        (shims / "git").write_text(
            f'#!/bin/sh\n[ -n "$AF_RUN" ] || echo "$@" >> "{self.count}"\nexec {git} "$@"\n'
        )
        (shims / "git").chmod(0o755)
        for name in ("home", "state", "tmux"):
            (scratch / name).mkdir()
        self.environment = {
            "PATH": f"{shims}:{os.environ['PATH']}", "HOME": str(scratch / "home"), "LANG": "C.UTF-8",
            "XDG_STATE_HOME": str(scratch / "state"), "TMUX_TMPDIR": str(scratch / "tmux"),
            "PYTHONPATH": str(root), "GIT_CONFIG_GLOBAL": str(scratch / "gitconfig"), "TERM": "xterm",
        }  # fmt: skip
        (scratch / "gitconfig").write_text("[user]\nname = A\nemail = a@example.org\n")
        self.git("init", "-q", "-b", "main", str(self.repo), cwd=scratch)
        (self.repo / "agent-farm.toml").write_text('[spawn]\nruntime = "demo"\n')
        self.git("add", ".")
        self.git("commit", "-qm", "first")

    def git(self, *words: str, cwd: Path | None = None) -> None:
        subprocess.run(["git", *words], cwd=cwd or self.repo, env=self.environment, check=True)

    def af(self, *words: str) -> None:
        done = subprocess.run(
            [sys.executable, "-m", "agent_farm", *words],
            cwd=self.repo, env=self.environment, check=True, capture_output=True, text=True,
        )  # fmt: skip
        self.said = done.stdout

    def counted(self, *words: str) -> int:
        self.count.write_text("")
        self.af(*words)
        return len(self.count.read_text().splitlines())

    def follow(self, *words: str) -> tuple[int, int]:
        out = self.scratch / "passed"
        subprocess.run(
            [sys.executable, "-c", TRACED, str(out), *words],
            cwd=self.repo, env=self.environment, check=True, capture_output=True,
        )  # fmt: skip
        modules, functions = json.loads(out.read_text())
        return modules, functions

    def work(self, builder: dict[str, str]) -> str:
        """A commit of its own, when the demo's turn has ended."""
        self.af("wait", builder["id"], "--timeout", "120")
        tree = Path(builder["worktree"])
        (tree / f"{builder['id']}.txt").write_text("work\n")
        self.git("add", ".", cwd=tree)
        self.git("commit", "-qm", "work", cwd=tree)
        return builder["id"]

    def close(self) -> None:
        for words in (("stop", "--all"), ("butler", "stop")):
            subprocess.run(
                [sys.executable, "-m", "agent_farm", *words],
                cwd=self.repo, env=self.environment, check=False, capture_output=True,
            )  # fmt: skip


if __name__ == "__main__":
    main()
