"""The engine: from a Cli and an order to a Launch for a pane, or to a run with a result."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import HeadlessOrder, InteractiveOrder, RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.plain_text import argument_for
from agent_farm.runtimes.result import RuntimeResult


class CliAdapter(RuntimeAdapter):
    """Drives what its `cli` describes; `demo` and the external executables are adapters of their own."""

    def interactive(self, order: InteractiveOrder) -> Launch:
        start = _named(self.cli, _in_pane(self.cli, order))
        command = self.find_command(order.env, order.command) or order.command or (self.binary_name,)
        argv = (*command, *fill(self.cli, self.cli.pane, start))
        files = tuple(LaunchFile(path, text) for path, text in _files(self.cli, start).items())
        scratch = _scratch(start) if start.mode in self.cli.temporary else None
        return Launch(argv, order.cwd, environment_of(self.cli, start), files, scratch)

    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        from agent_farm.disk import make_directory, replace_file
        from agent_farm.runtimes.lines import run_lines
        from agent_farm.runtimes.process import Command

        start = _named(self.cli, headless_start(self.cli, order))
        for path, text in _files(self.cli, start).items():
            make_directory(path.parent)
            replace_file(path, text)
        if self.cli.worker:
            argv, given = self.cli.worker(start)
        else:
            argv, given = (*order.command, *fill(self.cli, self.cli.headless, start)), order.prompt
        command = Command(
            argv=argv,
            cwd=order.cwd,
            env=environment_of(self.cli, start),
            given=given.encode("utf-8", "surrogateescape"),
            scratch=order.scratch,
            timeout=order.timeout,
        )
        return await run_lines(command, self.cli.events(start))


def fill(cli: Cli, template: str, start: Start) -> tuple[str, ...]:
    """The words of a command line after the program's name."""
    slots = {
        "permissions": _permissions(cli, start),
        "flags": tuple(cli.flags(start)),
        "model": _said(cli.words.model, start.model),
        "conversation": _said(cli.words.resume if start.resume else cli.words.begin, start.conversation_id),
        "extra": start.extra_args,
        "prompt": _prompt(cli, start),
    }
    words: list[str] = []
    for word in template.split():
        words += slots[word[1:-1]] if word.startswith("{") else (word,)
    return tuple(words)


def environment_of(cli: Cli, start: Start) -> dict[str, str]:
    """What it may have, where it finds its home, and the token of its server."""
    env = dict(start.env)
    if cli.home and cli.is_at_home(start.env):
        env[cli.home.variable] = str(start.home)
    if start.mode in cli.temporary:
        env[cli.temporary[start.mode]] = str(_scratch(start))
    if cli.hides_git_identity:
        from agent_farm.runtimes.checkout import identity_environment

        env |= identity_environment(start.cwd, start.env)
    return {**env, **cli.environment(start), **(start.server.environment() if start.server else {})}


def _in_pane(cli: Cli, order: InteractiveOrder) -> Start:
    return Start(
        mode="pane",
        env=order.env,
        cwd=order.cwd,
        home=order.run_directory / cli.binary,
        place=order.run_directory,
        top=order.worktree,
        run=order.run,
        server=order.mcp_server,
        role=order.role_text or "",
        prompt=order.prompt,
        prompt_file=order.prompt_file,
        permissions=order.permissions,
        model=order.model,
        conversation_id=order.conversation_id,
        resume=order.resume,
        extra_args=order.extra_args,
        report=order.report,
    )


def headless_start(cli: Cli, order: HeadlessOrder) -> Start:
    return Start(
        mode="headless",
        env=order.env,
        cwd=order.cwd,
        home=order.home / cli.binary,
        place=order.scratch,
        top=order.cwd,
        run=order.scratch.name,
        server=order.mcp_server,
        role=order.system_prompt,
        prompt=order.prompt,
        permissions=order.permissions,
        model=order.model,
        conversation_id=order.conversation_id,
        resume=order.resume,
        extra_args=order.extra_args,
        command=order.command,
        bounds=order.bounds,
        max_turns=order.max_turns,
    )


def _named(cli: Cli, start: Start) -> Start:
    """With the server under the name by which this CLI is to know it."""
    if start.server is None:
        return start
    return replace(start, server=replace(start.server, name=cli.server_name(start.server, start)))


def _files(cli: Cli, start: Start) -> dict[Path, str]:
    files = dict(cli.files(start))
    if start.mode in cli.temporary:
        files[_scratch(start) / ".keep"] = ""
    return files


def _scratch(start: Start) -> Path:
    return start.place / "scratch"


def _permissions(cli: Cli, start: Start) -> tuple[str, ...]:
    headless = cli.headless_permissions or cli.permissions
    return (cli.permissions if start.in_pane else headless)[start.permissions]


def _said(words: tuple[str, ...], value: str | None) -> tuple[str, ...]:
    return tuple(word.replace("{}", value) for word in words) if value else ()


def _prompt(cli: Cli, start: Start) -> tuple[str, ...]:
    if start.prompt is None or (start.resume and not cli.words.prompts_on_resume):
        return ()
    *before, last = cli.words.prompt
    prefix = last.partition("{}")[0]
    return (*before, prefix + argument_for(start.prompt, start.prompt_file, cli.own_words, prefix=prefix))
