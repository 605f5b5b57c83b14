"""Two builders of different types at work in a scratch repository, with the embedded demo runtime.

Everything lies in one scratch directory: repository, home, git configuration, tmux server. At the end
nothing is left, unless `--keep` says so; `--clean DIRECTORY` ends and removes what was kept.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

AF = Path(sys.executable).parent / "af"
TASK = "Write three lines about git worktrees into worktrees.md"
KEPT_VARIABLES = ("PATH", "LANG", "LC_ALL", "LC_CTYPE", "TERM", "COLORTERM", "COLUMNS", "NO_COLOR", "TZ")
SPEC = """\
# Spec 0001: Greeting

## Outcome

Write two lines about whoever opens this repository into greeting.md.

## Success criteria

- [ ] `greeting.md` exists and has two lines.
"""


class DemoFailed(Exception):
    pass


class Scratch:
    """A directory with a repository, a home and a tmux server of its own."""

    def __init__(self, directory: Path) -> None:
        self.directory = directory
        self.repository = directory / "repository"
        self.sockets = directory / "tmux"
        self.env_file = directory / "env.sh"

    def variables(self) -> dict[str, str]:
        home = self.directory / "home"
        return {
            "HOME": str(home),
            "XDG_CONFIG_HOME": str(home / ".config"),
            "XDG_STATE_HOME": str(home / ".local/state"),
            "XDG_CACHE_HOME": str(home / ".cache"),
            "GIT_CONFIG_GLOBAL": str(home / ".gitconfig"),
            "GIT_CONFIG_NOSYSTEM": "1",
            "TMUX_TMPDIR": str(self.sockets),
            "SHELL": "/bin/sh",
        }

    def environment(self) -> Mapping[str, str]:
        inherited = {name: os.environ[name] for name in KEPT_VARIABLES if name in os.environ}
        path = f"{AF.parent}{os.pathsep}{inherited.get('PATH', os.defpath)}"
        width = str(shutil.get_terminal_size((100, 24)).columns)  # it has no terminal to ask
        return {"TERM": "xterm-256color", "COLUMNS": width, **inherited, **self.variables(), "PATH": path}

    def make(self) -> None:
        for directory in (self.directory / "home", self.sockets, self.repository):
            directory.mkdir()
        (self.directory / "home/.gitconfig").write_text(
            "[user]\n\tname = Demo\n\temail = demo@example.invalid\n[init]\n\tdefaultBranch = main\n"
        )
        names = ("TMUX", "TMUX_PANE", "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "AF_TMUX_SOCKET")
        lines = [f"export {name}={shlex.quote(value)}" for name, value in self.variables().items()]
        lines += [f"unset {' '.join(names)}", f'export PATH={shlex.quote(str(AF.parent))}:"$PATH"']
        self.env_file.write_text("\n".join([*lines, f"cd {shlex.quote(str(self.repository))}", ""]))

    def ask(self, *command: str) -> str:
        return self._run(command).stdout.strip("\n")

    def show(self, *command: str) -> str:
        """Run a command as the reader would type it."""
        print(f"\n$ {' '.join(map(_typed, command))}", flush=True)
        done = self._run(command)
        print(f"{done.stdout}{done.stderr}".rstrip("\n") or "(says nothing: done)", flush=True)
        return done.stdout.strip("\n")

    def _run(self, command: Sequence[str]) -> subprocess.CompletedProcess[str]:
        """DemoFailed with all that a command said when it fails."""
        done = subprocess.run(
            command,
            cwd=self.repository,
            env=self.environment(),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        if done.returncode:
            raise DemoFailed(f"{shlex.join(command)}: exit {done.returncode}\n{done.stdout}{done.stderr}")
        return done

    def remove(self) -> None:
        if (self.repository / ".agent-farm/server.json").exists():
            self._run(("af", "butler", "stop", "--now"))
        for socket in self.sockets.glob("tmux-*/*"):
            subprocess.run(["tmux", "-S", str(socket), "kill-server"], check=False, capture_output=True)
        deadline = time.monotonic() + 10
        while any(map(_is_alive, self._processes())) and time.monotonic() < deadline:
            time.sleep(0.05)
        shutil.rmtree(self.directory)

    def _processes(self) -> list[int]:
        """What the builders ran as; a dying tmux server ends it, but does not wait for its end."""
        files = self.repository.glob(".agent-farm/runs/*/processes.json")
        documents = [json.loads(file.read_text()) for file in files]
        return [found[name] for found in documents for name in ("launcher", "runtime") if found.get(name)]


def run_demo(scratch: Scratch) -> tuple[str, str]:
    """From an empty repository to two builders whose work is committed; returns their ids."""
    scratch.make()
    _prepare_repository(scratch)
    _say(
        "The demo runtime stands in for an AI CLI: it needs no account, and writes the lines it is asked for."
    )
    _say("Two builders start, each in a worktree, branch and tmux session of its own:")
    task = _last_word(scratch.show("af", "spawn", TASK, "--runtime", "demo"))
    spec = _last_word(scratch.show("af", "spawn", "--project", "0001", "--runtime", "demo"))
    _say("All builders: what each does, who reported it, how long ago, commits ahead of main (= for none):")
    scratch.show("af", "status")
    _say("Wait until both have ended their turn:")
    scratch.show("af", "wait", task, spec, "--timeout", "60")
    scratch.show("af", "status")
    _say("What they did, each on its own branch:")
    for builder in (task, spec):
        scratch.show("af", "diff", builder)
    _say(f"This is what `af attach {task}` shows; there you watch and talk, and leave with Ctrl-b d:")
    scratch.show("af", "capture", task)
    return task, spec


def land_and_prune(scratch: Scratch, builders: tuple[str, str]) -> None:
    _say("Land the work, then stop and remove the builders that have landed:")
    scratch.show("af", "merge", *builders)
    scratch.show("af", "prune", "--stop")
    scratch.show("af", "status")
    scratch.show("git", "log", "--oneline")


def _is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except OSError:
        return False
    return True


def _prepare_repository(scratch: Scratch) -> None:
    scratch.ask("git", "init", "--quiet", "--initial-branch=main", ".")
    scratch.ask("af", "init")
    (scratch.repository / "codev/specs/0001-greeting.md").write_text(SPEC)
    scratch.ask("git", "add", ".")
    scratch.ask("git", "commit", "--quiet", "--message", "Set up agent-farm, and a first spec")


def _last_word(output: str) -> str:
    return output.split()[-1]


def _typed(word: str) -> str:
    return f'"{word}"' if " " in word else word


def _say(text: str) -> None:
    print(f"\n── {text}", flush=True)


def _say_how_to_go_on(scratch: Scratch, builders: tuple[str, str]) -> None:
    _say("Both are still there. In this shell or another one (the parentheses keep your own settings):")
    enter = f". {shlex.quote(str(scratch.env_file))}"
    for command in ("af status", f"af attach {builders[0]}", f'af send {builders[0]} "Add a fourth line"'):
        print(f"  ({enter} && {command})")
    _say("To end them and remove everything:")
    print(f"  {sys.executable} {os.path.relpath(__file__)} --clean {shlex.quote(str(scratch.directory))}")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0] if __doc__ else None)
    parser.add_argument("--keep", action="store_true", help="leave the builders running")
    parser.add_argument("--clean", metavar="DIRECTORY", type=Path, help="end and remove a kept demo")
    options = parser.parse_args()
    if options.clean is not None:
        return _clean(Scratch(options.clean))
    for ending in (signal.SIGTERM, signal.SIGHUP):  # as Ctrl-C: what was started is ended
        signal.signal(ending, signal.default_int_handler)
    # not in TMPDIR: the path of a socket has to be short
    scratch = Scratch(Path(tempfile.mkdtemp(prefix="af-demo-", dir="/tmp")))
    kept = False
    try:
        builders = run_demo(scratch)
        if options.keep:
            _say_how_to_go_on(scratch, builders)
            kept = True
        else:
            land_and_prune(scratch, builders)
            _say("Done; nothing is left running. `make demo KEEP=1` leaves the builders for you to try.")
    except DemoFailed as failure:
        print(f"\nThe demo failed: {failure}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        return 130
    finally:
        if not kept:
            scratch.remove()
    return 0


def _clean(scratch: Scratch) -> int:
    if not scratch.env_file.is_file() or not scratch.directory.name.startswith("af-demo-"):
        print(f"{scratch.directory} is not a demo's directory", file=sys.stderr)
        return 2
    scratch.remove()
    return 0


if __name__ == "__main__":
    sys.exit(main())
