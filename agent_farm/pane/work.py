"""One start of a builder, from `preparing` to the shell that is left."""

from __future__ import annotations

import os
import signal
import sys
import time
from types import FrameType
from typing import NoReturn

from agent_farm.pane.copies import copy_files
from agent_farm.pane.job import CannotStart, end_group, start_job, take_terminal, wait_job
from agent_farm.pane.journal import launcher_event, record_event, write_json
from agent_farm.pane.launchfile import Plan, forget_environment
from agent_farm.pane.notify import facts, start_detached
from agent_farm.pane.terminal import restore_terminal, saved_modes, say, terminal_is_gone


class HungUp(BaseException):
    """tmux is dying, or somebody ends the pane: no record, since the runtime did not end by itself."""

    def __init__(self, number: int) -> None:
        self.number = number


class Failed(Exception):
    """The runtime was not started; the message is the reason."""


def run_builder(plan: Plan, env: dict[str, str]) -> NoReturn:
    """Ends as the shell, or without a word when the pane is being ended."""
    _take_signals()
    builder = _Builder(plan, env)
    try:
        builder.run()
        take_terminal()
        _leave_shell(plan, env)
    except HungUp as hangup:
        _ignore_signals()
        builder.end_jobs()
        os._exit(128 + hangup.number)


class _Builder:
    def __init__(self, plan: Plan, env: dict[str, str]) -> None:
        self.plan = plan
        self.env = env
        self.groups: list[int] = []
        self.modes = saved_modes()

    def run(self) -> None:
        forget_environment(self.plan.directory)
        self.record("preparing", "preparing")
        try:
            self.prepare()
            status, seconds = self.run_runtime()
        except (Failed, KeyboardInterrupt) as error:
            self.close("failed", str(error) or "interrupted while preparing", None)
            return
        if terminal_is_gone():  # it ended because tmux did
            raise HungUp(signal.SIGHUP)
        code, killer = _reading(status)
        self.write_exit(code, killer, seconds)
        state, reason = ("exited", None) if code == 0 else ("failed", _reason(code, killer))
        self.close(state, reason, seconds)

    def prepare(self) -> None:
        if not self.plan.worktree.is_dir():
            raise Failed(f"the worktree {self.plan.worktree} is gone")
        for line in copy_files(self.plan.copies, self.plan.worktree):
            say(f"[agent-farm] {line}")
            self.record("copy", None, line)
        if self.plan.setup:
            say(f"[agent-farm] setup: {self.plan.setup}")
            code, killer = _reading(
                self.run_job(("/bin/sh", "-c", self.plan.setup), self.plan.worktree.as_posix())
            )
            if code != 0:
                raise Failed(f"setup was ended by {killer}" if killer else f"setup exited {code}")

    def run_runtime(self) -> tuple[int, float]:
        if not self.plan.cwd.is_dir():
            raise Failed(f"the directory {self.plan.cwd} is gone")
        begin = time.monotonic()
        status = self.run_job(self.plan.argv, str(self.plan.cwd), runtime=True)
        seconds = time.monotonic() - begin
        self.end_jobs()
        return status, seconds

    def run_job(self, argv: tuple[str, ...], cwd: str, *, runtime: bool = False) -> int:
        def started(pid: int) -> None:
            self.groups.append(pid)
            if runtime:
                processes = {"run": self.plan.run, "launcher": os.getpid(), "runtime": pid}
                write_json(str(self.plan.directory), "processes.json", processes)
                self.record("started", self.plan.states.get("started", "working"))

        try:
            status = wait_job(start_job(argv, self.env, cwd, started=started))
        except CannotStart as error:
            raise Failed(f"cannot start {argv[0]}: {error}") from error
        take_terminal()
        return status

    def end_jobs(self) -> None:
        while self.groups:
            end_group(self.groups.pop())

    def write_exit(self, code: int | None, killer: str | None, seconds: float) -> None:
        write_json(
            str(self.plan.directory),
            "exit.json",
            {
                "version": 1,
                "run": self.plan.run,
                "at": time.time(),
                "exit_code": code,
                "signal": killer,
                "seconds": round(seconds, 3),
            },
        )

    def record(self, name: str, state: str | None, reason: str | None = None) -> dict[str, object]:
        event = launcher_event(self.plan.run, name, state, reason)
        record_event(str(self.plan.directory), event)
        return event

    def close(self, state: str, reason: str | None, seconds: float | None) -> None:
        event = self.record(state, state, reason)
        self.end_jobs()
        restore_terminal(self.modes)
        plan = self.plan
        after = f" after {seconds:.0f} s" if seconds is not None else ""
        why = f": {reason}" if reason else ""
        say(f"[agent-farm] {plan.runtime} {state}{after}{why}. This is a shell in the worktree.")
        say(f"[agent-farm] go on:   af resume {plan.builder}")
        say(f"[agent-farm] remove:  af prune {plan.builder}")
        told = facts(plan.builder, plan.runtime, str(plan.worktree), event)
        for argv, extra in ((plan.notify, told), (plan.at_end, {})):
            problem = start_detached(argv, self.env | extra, self.env.get("AF_ROOT", "/")) if argv else None
            if problem:
                say(f"[agent-farm] not run: {problem}")


def _reading(status: int) -> tuple[int | None, str | None]:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        try:
            return None, signal.Signals(number).name
        except ValueError:
            return None, f"signal {number}"
    return os.WEXITSTATUS(status), None


def _reason(code: int | None, killer: str | None) -> str:
    return f"killed by {killer}" if killer else f"exit code {code}"


def _take_signals() -> None:
    def hang_up(number: int, frame: FrameType | None) -> None:
        raise HungUp(number)

    signal.signal(signal.SIGHUP, hang_up)
    signal.signal(signal.SIGTERM, hang_up)
    for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGQUIT, signal.SIGPIPE):
        signal.signal(number, signal.SIG_IGN)


def _ignore_signals() -> None:
    for number in (signal.SIGHUP, signal.SIGTERM, signal.SIGINT):
        signal.signal(number, signal.SIG_IGN)


def _leave_shell(plan: Plan, env: dict[str, str]) -> NoReturn:
    """In place of this process: the pane's program is then the shell, which tmux and `af` can see."""
    for directory in (plan.worktree, plan.worktree.parent, env.get("HOME", "/"), "/"):
        if os.path.isdir(directory):
            os.chdir(directory)
            break
    for number in (signal.SIGTTOU, signal.SIGTTIN, signal.SIGTSTP, signal.SIGQUIT, signal.SIGPIPE,
                   signal.SIGINT, signal.SIGHUP, signal.SIGTERM):  # fmt: skip
        signal.signal(number, signal.SIG_DFL)
    for shell in (plan.shell, ("/bin/sh", "-i")):
        try:
            os.execvpe(shell[0], list(shell), env)
        except OSError as error:
            say(f"[agent-farm] {shell[0]}: {error.strerror}")
    sys.exit(1)
