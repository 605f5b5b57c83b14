"""Drives any Cli: makes a Launch for a pane from it, or runs it headless to a result."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from agent_farm.disk import make_directory, replace_file
from agent_farm.launch import Launch, LaunchFile
from agent_farm.runtimes.base import RuntimeAdapter
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.plain_text import argument_for
from agent_farm.runtimes.worktree_facts import identity_environment

if TYPE_CHECKING:
    from agent_farm.runtimes.result import RuntimeResult


class CliAdapter(RuntimeAdapter):
    """The adapter for everything that a `Cli` can describe."""

    def interactive(self, start: Start) -> Launch:
        command = self.find_command(start.env, start.command) or start.command or (self.binary_name,)
        start = structs.replace(_at_home(self.cli, start), command=command)
        if start.resume:
            self.cli.before_resume(start)
        argv = (*command, *fill(self.cli, self.cli.pane, start))
        files = tuple(LaunchFile(path, text) for path, text in _files(self.cli, start).items())
        scratch = _scratch(start) if start.mode in self.cli.temporary else None
        return Launch(argv, start.cwd, environment_of(self.cli, start), files, scratch)

    async def run_headless(self, start: Start) -> RuntimeResult:
        from agent_farm.runtimes.headless_run import run_lines, with_limits  # asyncio: no pane needs it
        from agent_farm.runtimes.process import Command

        start = _at_home(self.cli, start)
        for path, text in _files(self.cli, start).items():
            make_directory(path.parent)
            replace_file(path, text)
        argv, given = (*(start.command or ()), *fill(self.cli, self.cli.headless, start)), start.prompt or ""
        if self.cli.worker:
            argv, given = self.cli.worker(start)
        command = Command(
            argv=argv,
            cwd=start.cwd,
            env=environment_of(self.cli, start),
            given=given.encode("utf-8", "surrogateescape"),
            scratch=start.place,
            timeout=start.timeout,
        )
        return with_limits(self.cli, await run_lines(command, self.cli.events(start)))


def fill(cli: Cli, template: str, start: Start) -> tuple[str, ...]:
    """The words of the command line after the program's name."""
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
    """The variables it gets, with those for its home and its server's token."""
    env = dict(start.env)
    if cli.home and cli.is_at_home(start.env) and not start.unlocked:
        env[cli.home.variable] = str(start.home)
    if start.mode in cli.temporary:
        env[cli.temporary[start.mode]] = str(_scratch(start))
    if cli.hides_git_identity:
        env |= identity_environment(start.cwd, start.env)
    return {**env, **cli.environment(start), **(start.server.environment() if start.server else {})}


def _at_home(cli: Cli, start: Start) -> Start:
    """The start with a home of its own, and with the server under this CLI's name for it."""
    server = start.server and structs.replace(start.server, name=cli.server_name(start.server, start))
    return structs.replace(start, home=start.home / cli.binary, server=server)


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
