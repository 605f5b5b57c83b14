"""A runtime as callers see it: a description, a Launch for a pane, and a result for a headless run."""

from __future__ import annotations

import json
import os
import uuid
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from msgspec import structs

from agent_farm.disk import replace_file
from agent_farm.errors import ToolMissing, UsageError, nearest, there_are
from agent_farm.launch import Launch, is_no_option
from agent_farm.runtimes import adapter_names, get_adapter
from agent_farm.runtimes.bounds import NONE, Bounds
from agent_farm.runtimes.cli import PERMISSIONS as PERMISSIONS
from agent_farm.runtimes.cli import Cli, Start
from agent_farm.runtimes.cli import Permissions as Permissions
from agent_farm.runtimes.environment import without_foreign_keys
from agent_farm.runtimes.mcp_config import GivenServers, as_servers, one_server
from agent_farm.runtimes.versions import installed_version, is_older, major_of
from agent_farm.search_path import find_program

if TYPE_CHECKING:
    from agent_farm.runtimes.result import OnProgress, RuntimeResult


def require_model(model: str | None) -> str | None:
    """It becomes an argument, and a repository may choose it, so it must not look like an option."""
    if model is not None and not is_no_option(model):
        raise UsageError(f"{model!r} cannot be the name of a model", hint="af config list")
    return model


def require_adapter(name: str, root: Path | None, *, command: str | None = None) -> RuntimeAdapter:
    """`command` is suggested in the error, with the name that was probably meant."""
    try:
        return get_adapter(name, root)
    except ValueError as error:
        names = adapter_names(root)
        close = nearest(name, names)
        hint = f"{command} {close}" if command and close else "af runtimes"
        raise UsageError(f"No runtime {name}", why=there_are(name, names), hint=hint) from error


def no_runtime(problems: Sequence[str], *, hint: str) -> ToolMissing:
    return ToolMissing(
        "No runtime is usable",
        why="Install one and log in, or try the demo runtime, which needs no account.",
        evidence=problems,
        hint=hint,
    )


class RuntimeAdapter(ABC):
    """`cli` describes the runtime. `engine.CliAdapter` is the adapter for every AI CLI."""

    cli: Cli

    @property
    def name(self) -> str:
        return self.cli.name

    @property
    def binary_name(self) -> str:
        return self.cli.binary

    def problem(
        self, env: Mapping[str, str], *, command: Sequence[str] | None = None, model: str | None = None
    ) -> str | None:
        """None, or why it cannot be started and what to do; looks without starting anything."""
        return self.program_problem(env, command) or self.cli.login(env, model)

    def program_problem(self, env: Mapping[str, str], command: Sequence[str] | None = None) -> str | None:
        """None, or what to install."""
        if self.find_command(env, command) is None:
            missing = command[0] if command else self.binary_name
            return f"{missing} is not installed; {self.cli.install}"
        version = self._version(env, command)
        return self.version_problem(version) if version else None

    def version_problem(self, version: str) -> str | None:
        """None, or what to do if it is known not to work with this version, or not known to."""
        cli = self.cli
        if cli.oldest and is_older(version, cli.oldest):
            return f"{cli.binary} {version} is too old, {cli.oldest} is needed; {cli.install}@latest"
        if cli.last_major is not None and major_of(version) > cli.last_major:
            known = f"af drives {cli.binary} up to version {cli.last_major}"
            return f"{cli.binary} {version} is too new: {known}; {cli.install}@{cli.last_major}"
        return None

    def version_note(self, env: Mapping[str, str], command: Sequence[str] | None = None) -> str | None:
        """What is worth knowing about the installed version."""
        version = self._version(env, command)
        return self.unfamiliar(version) if version else None

    def unfamiliar(self, version: str) -> str | None:
        """None, or a note that no version like this one was ever tried."""
        if not self.cli.tried or major_of(version) == major_of(self.cli.tried):
            return None
        return (
            f"{self.binary_name} {version} has a different major version from {self.cli.tried}, which"
            " was tried"
        )

    def _version(self, env: Mapping[str, str], command: Sequence[str] | None) -> str | None:
        """The installed version, according to its files; not checked for a command that the user chose."""
        found = None if command or not self.cli.oldest else self.find_command(env)
        return installed_version(found[0], self.cli.install.rpartition(" ")[2]) if found else None

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        """The argv prefix that starts it: the configured command, else its binary on the PATH in `env`."""
        words = tuple(command) if command else (self.binary_name,)
        found = find_program(words[0], env.get("PATH", os.defpath))
        if found is None and not command:
            return self.cli.bundled()
        return (os.path.abspath(found), *words[1:]) if found else None

    def new_conversation_id(self) -> str | None:
        """An id for the next conversation; None if the runtime chooses and reports it."""
        if not self.cli.words.begin:
            return None
        return str(uuid.uuid4())

    @abstractmethod
    def interactive(self, start: Start) -> Launch:
        """How to start it in a pane; the Launch contains the files it needs, and nothing is written here."""

    async def invoke(
        self,
        prompt: str,
        system_prompt: str,
        mcp_servers: GivenServers,
        env: Mapping[str, str],
        *,
        max_turns: int = 20,
        model: str | None = None,
        runtime_args: Sequence[str] | None = None,
        cwd: Path | None = None,
        timeout: float | None = None,
        permissions: Permissions = "edit",
        conversation_id: str | None = None,
        resume: bool = False,
        home: Path | None = None,
        command: Sequence[str] | None = None,
        bounds: Bounds = NONE,
        on_progress: OnProgress | None = None,
    ) -> RuntimeResult:
        """One headless run. Failures of the run are in the result; only cancellation is raised.

        `home` is a private directory in which the runtime may keep conversations between runs. Without it, a
        run cannot be resumed if the runtime's own home must not be used. `on_progress` gets the result so
        far, whenever there is more.
        """
        from agent_farm.runtimes.one_run import result_of  # loads dataclasses, which no pane needs

        def start() -> Start:
            return structs.replace(
                self._locked_start(cwd or Path.cwd(), env, model, mcp_servers),
                role=system_prompt,
                prompt=prompt,
                permissions=permissions,
                conversation_id=conversation_id or self.new_conversation_id(),
                resume=resume and conversation_id is not None,
                extra_args=tuple(runtime_args or ()),
                command=tuple(command) if command else None,
                bounds=bounds,
                max_turns=max_turns,
                timeout=timeout,
                on_progress=on_progress,
            )

        return await result_of(self, start, home)

    def _locked_start(
        self, place: Path, env: Mapping[str, str], model: str | None, servers: GivenServers
    ) -> Start:
        """What a headless run in `place` gets; where its files go is decided when it begins."""
        own, server = self.own_environment(env, model), one_server(servers)
        return Start("headless", own, place, home=place, place=place, top=place, server=server, model=model)

    def own_environment(self, env: Mapping[str, str], model: str | None) -> dict[str, str]:
        """The part of a headless run's environment that is for this runtime."""
        return without_foreign_keys(env, self.cli.own_variables(env, model))

    @abstractmethod
    async def run_headless(self, start: Start) -> RuntimeResult:
        """Run it; `start` has the command and the runtime's own environment."""

    def build_config_file(self, mcp_servers: GivenServers, tmp_dir: Path) -> Path:
        """Write the MCP configuration, in the runtime's own format, into the existing `tmp_dir`."""
        path = tmp_dir / self.cli.config_file
        document = self.cli.config(as_servers(mcp_servers))
        if path.suffix == ".toml":
            import tomli_w  # only one CLI needs it

            replace_file(path, tomli_w.dumps(document))
        else:
            replace_file(path, json.dumps(document, indent=2))
        return path

    def parse_system_prompt_file(self, config_dir: Path) -> str:
        """The text of CLAUDE.md in `config_dir`; empty if there is none."""
        try:
            return (config_dir / "CLAUDE.md").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def create_worker(self) -> RuntimeAdapter:
        """A new instance that shares nothing with this one."""
        return type(self)()

    async def reset(self) -> None:  # noqa: B027  (most adapters keep nothing)
        """Forget whatever a failed run left in this instance."""
