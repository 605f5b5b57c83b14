"""What every runtime adapter is: class data, one Launch for a pane, one result for a headless run."""

from __future__ import annotations

import os
import shutil
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import ClassVar, Literal

from agent_farm.errors import AgentFarmError
from agent_farm.launch import Launch
from agent_farm.runtimes.bounds import NONE, Bounds
from agent_farm.runtimes.conversations import keep_conversation
from agent_farm.runtimes.environment import without_foreign_keys
from agent_farm.runtimes.mcp_config import McpServer, Transport, config_directory, one_server
from agent_farm.runtimes.plain_text import OwnWords
from agent_farm.runtimes.progress import OnProgress, telling
from agent_farm.runtimes.result import Failure, RuntimeResult, failure_of
from agent_farm.runtimes.screen_patterns import ScreenPatterns as ScreenPatterns
from agent_farm.runtimes.versions import installed_version, is_older

Permissions = Literal["ask", "edit", "all"]
PERMISSIONS: tuple[Permissions, ...] = ("ask", "edit", "all")


@dataclass(frozen=True, slots=True)
class InteractiveOrder:
    """All that a start in a pane depends on.

    `hook_argv(EVENT)` is the command that reports an event of this run; `-` takes its name from the
    payload. Without `mcp_server` the runtime gets a strict and empty MCP configuration. `env` is what the
    runtime may have; an adapter adds only names of its own. `resume` continues `conversation_id`.
    """

    builder: str
    run: str
    run_directory: Path
    worktree: Path
    cwd: Path
    env: Mapping[str, str]
    hook_argv: Callable[[str], tuple[str, ...]]
    prompt: str | None = None
    prompt_file: Path | None = None
    role_text: str | None = None
    model: str | None = None
    permissions: Permissions = "edit"
    conversation_id: str | None = None
    resume: bool = False
    mcp_server: McpServer | None = None
    extra_args: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None


@dataclass(frozen=True, slots=True)
class HeadlessOrder:
    """All that a headless run depends on; `invoke` makes it from its arguments.

    `scratch` is the run's own directory, gone afterwards; `home` may outlive it. Neither is made by others
    than the adapter. `env` holds the server's token.
    """

    prompt: str
    system_prompt: str
    mcp_server: McpServer | None
    env: Mapping[str, str]
    command: tuple[str, ...]
    cwd: Path
    scratch: Path
    home: Path
    max_turns: int = 20
    model: str | None = None
    extra_args: tuple[str, ...] = ()
    timeout: float | None = None
    permissions: Permissions = "edit"
    conversation_id: str | None = None
    resume: bool = False
    bounds: Bounds = NONE

    @property
    def skills_home(self) -> Path:
        """The directory whose `skills/` may run."""
        return self.bounds.own or self.cwd


class RuntimeAdapter(ABC):
    name: ClassVar[str]
    title: ClassVar[str]
    binary_name: ClassVar[str]
    install_hint: ClassVar[str]
    # the oldest version that it was seen to work with
    oldest: ClassVar[str] = ""
    # environment variables of its own: keys, endpoints, its configuration home
    key_names: ClassVar[tuple[str, ...]] = ()
    # "EVENT" or "EVENT:subtype" of its hooks -> state; an event that is missing here changes nothing
    states: ClassVar[Mapping[str, str]] = {}
    # the same, only for a start without a prompt: nothing follows that would make it working
    ready_states: ClassVar[Mapping[str, str]] = {}
    # the event that says that a message has reached the model; empty where no hook tells
    submit_event: ClassVar[str] = ""
    # events of waiting whose end (a dialog is answered) or cause only the screen tells
    unsure_events: ClassVar[tuple[str, ...]] = ()
    # whether hook commands must answer JSON on their standard output
    hooks_want_json: ClassVar[bool] = False
    # whether it says so when its MCP server is dead or refuses the token; else that is asked before the start
    notices_dead_mcp: ClassVar[bool] = True
    screen: ClassVar[ScreenPatterns] = ScreenPatterns()
    own_words: ClassVar[OwnWords] = OwnWords()
    resumes: ClassVar[bool] = True
    # the MCP transports it speaks headless, the one to prefer first
    transports: ClassVar[tuple[Transport, ...]] = ("http", "sse")
    # whether its program answers --version; our own and the repository's have none to tell
    tells_version: ClassVar[bool] = True
    # whether a model calls MCP tools through it, and in which words `af runtimes check` asks for one
    calls_tools: ClassVar[bool] = True
    # what of its private home is a conversation; the rest goes when a headless run has ended
    conversation_files: ClassVar[tuple[str, ...]] = ()
    # whether it can be let read a directory, headless, without being let write there
    reads_beside: ClassVar[bool] = True
    check_prompt: ClassVar[str] = ""

    def problem(
        self, env: Mapping[str, str], *, command: Sequence[str] | None = None, model: str | None = None
    ) -> str | None:
        """None, or why it cannot be started and what to do; looks, and starts nothing."""
        return self.program_problem(env, command) or self.login_problem(env, model)

    def program_problem(self, env: Mapping[str, str], command: Sequence[str] | None = None) -> str | None:
        """None, or what to install."""
        found = self.find_command(env, command)
        if found is None:
            missing = command[0] if command else self.binary_name
            return f"{missing} is not installed; {self.install_hint}"
        if command or not self.oldest:  # a command of the user's is the user's choice
            return None
        version = installed_version(found[0], self.install_hint.rpartition(" ")[2])
        return self.too_old(version) if version else None

    def too_old(self, version: str) -> str | None:
        """None, or what to do about a version with which it is known not to work, or not known to."""
        if not self.oldest or not is_older(version, self.oldest):
            return None
        return f"{self.binary_name} {version} is too old, {self.oldest} is needed; {self.install_hint}@latest"

    def login_problem(self, env: Mapping[str, str], model: str | None = None) -> str | None:
        """None, or why it would ask for a login, or go to somebody whom nobody has chosen."""
        return None

    def find_command(
        self, env: Mapping[str, str], command: Sequence[str] | None = None
    ) -> tuple[str, ...] | None:
        """The argv prefix that starts it: the configured command, else its binary on the PATH of `env`."""
        if command:
            found = find_executable(command[0], env)
            return (found, *command[1:]) if found else None
        found = find_executable(self.binary_name, env)
        return (found,) if found else None

    def keys_for(self, model: str | None) -> tuple[str, ...]:
        """The environment variables it may have for `model`, never another vendor's."""
        return self.key_names

    @property
    def every_key(self) -> tuple[str, ...]:
        """Those it may have for any model."""
        return self.key_names

    def own_environment(self, env: Mapping[str, str], model: str | None) -> dict[str, str]:
        """What of a headless run's environment is for this runtime."""
        return without_foreign_keys(env, self.keys_for(model))

    @abstractmethod
    def permission_words(self, permissions: Permissions) -> str:
        """What `permissions` means for it in a pane, in its own words, for the documentation."""

    @abstractmethod
    def headless_permission_words(self, permissions: Permissions) -> str:
        """The same, headless, where nobody can be asked."""

    def new_conversation_id(self) -> str | None:
        """An id to start the next conversation under; None when the runtime chooses and reports it."""
        return None

    def states_for(self, order: InteractiveOrder) -> dict[str, str]:
        """What goes into launch.json as `states`."""
        return {**self.states, **({} if order.prompt is not None else self.ready_states)}

    @abstractmethod
    def interactive(self, order: InteractiveOrder) -> Launch:
        """How to start it in a pane; the files it needs are in the Launch, nothing is written here."""

    async def invoke(
        self,
        prompt: str,
        system_prompt: str,
        mcp_servers: Mapping[str, McpServer | Mapping[str, object]],
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

        `home` is a private directory in which the runtime may keep its conversations from run to run;
        without it a run cannot be resumed where the runtime's own home may not be used. `on_progress` gets
        what the run has come to, whenever it has come further.
        """
        import time

        started = time.monotonic()
        try:
            own = self.own_environment(env, model)
            server = one_server(mcp_servers)
            place = cwd or Path.cwd()
            failure = self._obstacle(own, command, place, model) or await self._dead_server(server)
            if failure:
                return RuntimeResult(failure=failure)
            name = server.name if server else self.name
            with config_directory(name, env=own) as scratch, telling(on_progress):
                result = await self.run_headless(
                    HeadlessOrder(
                        prompt=prompt,
                        system_prompt=system_prompt,
                        mcp_server=server,
                        env={**own, **(server.environment() if server else {})},
                        command=self.find_command(own, command) or (),
                        cwd=place,
                        scratch=scratch,
                        home=home or scratch / "home",
                        max_turns=max_turns,
                        model=model,
                        extra_args=tuple(runtime_args or ()),
                        timeout=timeout,
                        permissions=permissions,
                        conversation_id=conversation_id or self.new_conversation_id(),
                        resume=resume and conversation_id is not None,
                        bounds=bounds,
                    )
                )
        except (AgentFarmError, OSError, ValueError) as error:
            result = RuntimeResult(failure=failure_of(error))
        finally:
            if home is not None:
                keep_conversation(home, self.conversation_files)
        return replace(result, seconds=round(time.monotonic() - started, 3))

    def _obstacle(
        self, env: Mapping[str, str], command: Sequence[str] | None, cwd: Path, model: str | None
    ) -> Failure | None:
        """Why a headless run need not be begun."""
        if (missing := self.program_problem(env, command)) is not None:
            return Failure("not-installed", missing)
        if (reason := self.login_problem(env, model)) is not None:
            return Failure("not-logged-in", reason)
        if not cwd.is_dir():
            return Failure("refused-argument", f"there is no directory {cwd} to work in")
        return None

    async def _dead_server(self, server: McpServer | None) -> Failure | None:
        from agent_farm.runtimes.mcp_probe import probe_server

        return await probe_server(server) if server and not self.notices_dead_mcp else None

    @abstractmethod
    async def run_headless(self, order: HeadlessOrder) -> RuntimeResult:
        """The run itself, with its command found and the environment its own."""

    @abstractmethod
    def build_config_file(
        self, mcp_servers: Mapping[str, McpServer | Mapping[str, object]], tmp_dir: Path
    ) -> Path:
        """Write the MCP configuration in the runtime's own form into the existing `tmp_dir`."""

    def parse_system_prompt_file(self, config_dir: Path) -> str:
        """The text of CLAUDE.md in `config_dir`; empty when there is none."""
        try:
            return (config_dir / "CLAUDE.md").read_text(encoding="utf-8")
        except FileNotFoundError:
            return ""

    def create_worker(self) -> RuntimeAdapter:
        """A new instance that shares nothing with this one."""
        return type(self)()

    async def reset(self) -> None:  # noqa: B027  (most adapters keep nothing)
        """Forget whatever a failed run left in this instance."""


def find_executable(name: str, env: Mapping[str, str]) -> str | None:
    """The absolute path of `name`, looked up as the runtime's own environment would."""
    found = shutil.which(name, path=env.get("PATH", os.defpath))
    return os.path.abspath(found) if found else None
