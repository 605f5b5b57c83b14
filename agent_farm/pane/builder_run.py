"""One start of a builder, from `preparing` to the shell that remains."""

from __future__ import annotations

import os
import time

from agent_farm.descendants import end_children
from agent_farm.lean import loads, signal, suppress
from agent_farm.pane.job import CannotStart, start_job, take_terminal, wait_job
from agent_farm.pane.journal import current_state, launcher_event, record_event, write_json
from agent_farm.pane.keeper import GRACE_SECONDS, Keeper
from agent_farm.pane.launchfile import Plan, forget_environment
from agent_farm.pane.notices import facts, start_detached
from agent_farm.pane.pane_terminal import (
    AT_ONCE_SECONDS,
    last_words,
    restore_terminal,
    saved_modes,
    say,
    terminal_is_gone,
)
from agent_farm.pane.shell import become_shell
from agent_farm.pane.signals import HungUp, take_signals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from typing import NoReturn

_TOLD_EVERY_SECONDS = 1.0


class Failed(Exception):
    """The runtime was not started; the message is the reason."""


def run_builder(plan: Plan, env: dict[str, str]) -> NoReturn:
    """Ends as the shell, or silently if the pane is being ended."""
    take_signals()
    builder = _Builder(plan, env)
    keeper = Keeper(builder.run_and_close, builder.end_jobs)
    try:
        status = keeper.run()
        if status != 0:
            builder.close_unkept(status)
        take_terminal()
        become_shell(plan.shell, plan.worktree, env)
    except HungUp as hangup:
        keeper.end()
        os._exit(128 + hangup.number)


class _Builder:
    def __init__(self, plan: Plan, env: dict[str, str]) -> None:
        self.plan = plan
        self.env = env
        self.launcher = os.getpid()
        self.groups: list[int] = []
        self.modes = saved_modes()

    def run_and_close(self) -> None:
        try:
            self.run()
        except Exception as error:  # any failure at all: the person should find it on the screen, and a shell
            self.end_jobs()
            self.close("failed", f"the launcher failed: {error!r}", None)

    def run(self) -> None:
        self.on_disk(lambda: forget_environment(self.plan.directory))
        self.record("preparing", "preparing")
        try:
            self.prepare()
            status, seconds = self.run_runtime()
        except (Failed, KeyboardInterrupt) as error:
            self.end_jobs()
            self.require_terminal()
            self.close("failed", str(error) or "interrupted while preparing", None)
            return
        self.require_terminal()
        code, killer = _reading(status)
        self.write_exit(code, killer, seconds)
        state, reason = ("exited", None) if code == 0 else ("failed", _reason(code, killer))
        said = last_words(self.env) if code and seconds < AT_ONCE_SECONDS else None
        self.close(state, f"{reason}: {said}" if said else reason, seconds)

    def close_unkept(self, status: int) -> None:
        """Runs in the launcher after the keeper was killed, and the runtime with it."""
        self.require_terminal()
        if current_state(self.plan.directory, self.plan.run) in ("exited", "failed"):
            return  # it had got that far
        killer = _signal_of(status)
        started = _started_at(self.plan)
        seconds = None if started is None else time.time() - started
        if seconds is not None:
            self.write_exit(None, killer, seconds)
        self.close("failed", f"killed by {killer}, like its keeper", seconds)

    def require_terminal(self) -> None:
        """Raise if tmux is gone: what ended because of that did not end by itself."""
        if terminal_is_gone():
            raise HungUp(signal.SIGHUP)

    def on_disk(self, write: Callable[[], object]) -> None:
        """Run `write`; a full disk must not end the builder."""
        try:
            write()
        except OSError as error:
            say(f"[agent-farm] not recorded: {error}")

    def prepare(self) -> None:
        if not os.path.isdir(self.plan.worktree):
            raise Failed(f"the worktree {self.plan.worktree} is gone")
        self.copy()
        if self.plan.setup:
            say(f"[agent-farm] setup: {self.plan.setup}")
            words = (*self.plan.before_setup, "/bin/sh", "-c", self.plan.setup)
            code, killer = _reading(self.run_job(words, self.plan.worktree))
            if code != 0:
                raise Failed(f"setup was ended by {killer}" if killer else f"setup exited {code}")

    def copy(self) -> None:
        """Here, and only here, Ctrl-C is meant for the launcher itself."""
        if not self.plan.copies:
            return
        from pathlib import Path

        from agent_farm.pace import now_and_then
        from agent_farm.pane.copies import copy_files  # loads shutil: most builders need neither

        signal.signal(signal.SIGINT, signal.default_int_handler)
        try:
            step = now_and_then(lambda line: say(f"[agent-farm] {line}"), _TOLD_EVERY_SECONDS)
            for line in copy_files(self.plan.copies, Path(self.plan.worktree), step=step):
                say(f"[agent-farm] {line}")
                self.record("copy", None, line)
        finally:
            signal.signal(signal.SIGINT, signal.SIG_IGN)

    def run_runtime(self) -> tuple[int, float]:
        if not os.path.isdir(self.plan.cwd):
            raise Failed(f"the directory {self.plan.cwd} is gone")
        begin = time.monotonic()
        status = self.run_job(self.plan.argv, self.plan.cwd, runtime=True)
        seconds = time.monotonic() - begin
        self.end_jobs()
        return status, seconds

    def run_job(self, argv: tuple[str, ...], cwd: str, *, runtime: bool = False) -> int:
        def started(pid: int) -> None:
            self.groups.append(pid)
            if runtime:
                processes = {
                    "run": self.plan.run,
                    "launcher": self.launcher,
                    "keeper": os.getpid(),
                    "runtime": pid,
                }
                self.on_disk(lambda: write_json(self.plan.directory, "processes.json", processes))
                self.record("started", "working")

        try:
            status = wait_job(start_job(argv, self.env, cwd, started=started))
        except CannotStart as error:
            raise Failed(f"cannot start {argv[0]}: {error}") from error
        take_terminal()
        return status

    def end_jobs(self) -> None:
        """End the jobs and what they left behind, even in sessions of their own. If there was no job, nothing
        is ended: the user's commands at the end may have started it."""
        if self.groups:
            end_children(GRACE_SECONDS, self.groups)
            self.groups = []
            self.empty_scratch()

    def empty_scratch(self) -> None:
        """The directory itself stays: the shell's environment may name it."""
        if self.plan.scratch:
            import shutil

            shutil.rmtree(self.plan.scratch, ignore_errors=True)
            with suppress(OSError):
                os.mkdir(self.plan.scratch, 0o700)

    def write_exit(self, code: int | None, killer: str | None, seconds: float) -> None:
        record = {
            "version": 1,
            "run": self.plan.run,
            "at": time.time(),
            "exit_code": code,
            "signal": killer,
            "seconds": round(seconds, 3),
        }
        self.on_disk(lambda: write_json(self.plan.directory, "exit.json", record))

    def record(self, name: str, state: str | None, reason: str | None = None) -> dict[str, object]:
        event = launcher_event(self.plan.run, name, state, reason)
        self.on_disk(lambda: record_event(self.plan.directory, event))
        return event

    def close(self, state: str, reason: str | None, seconds: float | None) -> None:
        event = self.record(state, state, reason)
        restore_terminal(self.modes)
        plan = self.plan
        after = f" after {seconds:.0f} s" if seconds is not None else ""
        why = f": {reason}" if reason else ""
        say(f"[agent-farm] {plan.runtime} {state}{after}{why}. This is a shell in the worktree.")
        say(f"[agent-farm] continue, from another terminal: af resume {plan.builder}")
        say(f"[agent-farm] remove, from another terminal:   af prune {plan.builder}")
        told = (self._tell(name, event) for name in self.plan.notices)
        for problem in (*told, self._run_at_end(), self._start_next()):
            if problem:
                say(f"[agent-farm] not run: {problem}")

    def _tell(self, name: str, event: Mapping[str, object]) -> str | None:
        plan, notice = self.plan, self.plan.notices[name]
        if not notice.is_for(event["state"]):
            return None
        told = facts(plan.builder, plan.runtime, plan.worktree, event)
        env, root = notice.environment(self.env, told), self.env.get("AF_ROOT", "/")
        return start_detached(notice.argv, env, root, os.path.join(plan.directory, f"{name}.log"))

    def _run_at_end(self) -> str | None:
        at_end = self.plan.at_end
        return start_detached(at_end, self.env, self.env.get("AF_ROOT", "/")) if at_end else None

    def _start_next(self) -> str | None:
        """A builder that waits may start now, since there is room."""
        try:
            if self.plan.waiting is None or not os.listdir(self.plan.waiting):
                return None
        except OSError:  # nobody has ever waited here
            return None
        return start_detached(self.plan.start_next, self.env, self.env.get("AF_ROOT", "/"))


def _started_at(plan: Plan) -> float | None:
    """When this run's runtime was started; None if it was not."""
    with suppress(OSError, ValueError, KeyError), open(f"{plan.directory}/processes.json", "rb") as file:
        if loads(file.read())["run"] == plan.run:
            return os.fstat(file.fileno()).st_mtime
    return None


def _signal_of(status: int) -> str:
    """The signal that ended a keeper; one that was asked to end says so by its exit code."""
    code, killer = _reading(status)
    return killer or _name_of((code or 0) - 128) or "SIGKILL"


def _reading(status: int) -> tuple[int | None, str | None]:
    if os.WIFSIGNALED(status):
        number = os.WTERMSIG(status)
        return None, _name_of(number) or f"signal {number}"
    return os.WEXITSTATUS(status), None


def _name_of(number: int) -> str | None:
    from signal import Signals  # loads enum, only for a run that was killed

    with suppress(ValueError):
        return Signals(number).name
    return None


def _reason(code: int | None, killer: str | None) -> str:
    return f"killed by {killer}" if killer else f"exit code {code}"
