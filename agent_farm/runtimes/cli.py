"""Cli: what an AI CLI is, as data. One file for each CLI holds one; `engine.py` drives it in every mode.

| mode     | what it needs of the description                     | who starts it                       |
| -------- | ---------------------------------------------------- | ----------------------------------- |
| pane     | `pane`, `words`, `flags`, `files`, `hooks`, `screen` | `CliAdapter.interactive` → `Launch` |
| headless | `headless`, `words`, `flags`, `files`, `events`      | `CliAdapter.invoke`                 |
| ask      | `ask.command`, `ask.stdin`, `events`                 | `af ask`                            |
| chat     | `ask.chat`                                           | `af chat`                           |

`pane` and `headless` are the words after the program's name. A word in braces stands for those that differ
from start to start: {permissions} {flags} {model} {conversation} {extra} {prompt}; where there is nothing to
say it stands for none.

What cannot be data is a function of a `Start`: `flags`, `files`, `environment`, and `events`, which makes the
parser of what it prints. A sixth CLI is one such file and one line in ADAPTERS: docs/adding-a-runtime.md.
"""

from __future__ import annotations

import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Literal

from msgspec import Struct, field
from msgspec.structs import asdict

from agent_farm.runtimes.bounds import NONE, Bounds
from agent_farm.runtimes.mcp_config import McpServer, Transport, claude_form
from agent_farm.runtimes.parsers import no_parser
from agent_farm.runtimes.plain_text import INPUT_LINE, OwnWords

if TYPE_CHECKING:
    from agent_farm.runtimes.lines import LineParser
    from agent_farm.runtimes.result import OnProgress

Permissions = Literal["ask", "edit", "all"]
PERMISSIONS: tuple[Permissions, ...] = ("ask", "edit", "all")
Environment = Mapping[str, str]
HOOK_SECONDS = 30  # far more than it takes: a CLI continues without a server that was too late


class Start(Struct, frozen=True):
    """All that one start of a runtime depends on.

    `env` is what it may have; an adapter adds only names of its own. `place` is the directory of this start
    alone: a builder's run directory, or one that is gone when a headless run has ended. `home` is where its
    private configuration home is, which may outlive the start, and holds its conversations. `top` is the
    checkout that `cwd` is in, `builder` whose pane it is. `report` is the command that its hooks run, with
    their payload on standard input, `await_tools` one that ends when the server has told its tools. Without
    `server` it gets a strict and empty MCP configuration. `resume` continues `conversation_id`. `skills` is
    the directory whose `skills/` may run unasked, headless. `unlocked` are words of `Cli.unlocks`.
    """

    mode: Literal["pane", "headless", "ask"]
    env: Environment
    cwd: Path
    home: Path
    place: Path
    top: Path
    run: str = ""
    builder: str = ""
    server: McpServer | None = None
    role: str = ""
    prompt: str | None = None
    prompt_file: Path | None = None
    permissions: Permissions = "edit"
    model: str | None = None
    conversation_id: str | None = None
    resume: bool = False
    extra_args: tuple[str, ...] = ()
    unlocked: tuple[str, ...] = ()
    command: tuple[str, ...] | None = None
    report: tuple[str, ...] = ()
    await_tools: tuple[str, ...] = ()
    bounds: Bounds = NONE
    max_turns: int = 20
    timeout: float | None = None
    on_progress: OnProgress | None = None

    @property
    def in_pane(self) -> bool:
        return self.mode == "pane"

    @property
    def skills(self) -> Path:
        return self.bounds.own or self.cwd

    @property
    def report_line(self) -> str:
        """For CLIs that only take a shell command line, every word quoted."""
        return shlex.join(self.report)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        return (self.server,) if self.server else ()


class Screen(Struct, frozen=True):
    """Regular expressions over a pane's text: they hold a message back or correct a stale state, no more.

    `ready` matches an empty input line, `draft` one that holds unsent text, `dialog` a question that an
    Enter would answer, `working` a turn that runs, `failed` an error after which it waits for a person,
    `interrupted` what it says when a person ended the turn. An empty string matches nothing; matching is by
    line (MULTILINE), and the lowest match on the screen counts. With `shows_work`, a turn runs only while
    `working` is to be seen, however often the rest is drawn anew.
    """

    ready: str = ""
    draft: str = ""
    dialog: str = ""
    working: str = ""
    failed: str = ""
    interrupted: str = ""
    shows_work: bool = False


class Hooks(Struct, frozen=True):
    """What it reports from a pane, and where its payloads say what; `pane/report.py` gets it in launch.json.

    `states` are "EVENT" or "EVENT:kind" → state; an event that is missing changes nothing. `ready_states`
    count only for a start without a prompt: nothing follows that would make it working. `submitted` is the
    event of a message that has reached the model; empty where no hook tells. `unsure` are events of waiting
    whose end, a dialog that is answered, or whose cause only the screen tells. `also` are events that are
    hooked for what they carry. With `wants_reply` a hook command has to answer JSON.

    Of several fields of a payload the first that says something counts. `asked_about` holds what a tool that
    is asked about would be used on; `writers` are the tools that write one file, and the field that names it.
    """

    states: Mapping[str, str] = field(default_factory=dict)
    ready_states: Mapping[str, str] = field(default_factory=dict)
    submitted: str = ""
    unsure: tuple[str, ...] = ()
    also: tuple[str, ...] = ("SessionStart", "SessionEnd")
    wants_reply: bool = False
    kind: tuple[str, ...] = ("source",)
    conversation: tuple[str, ...] = ("session_id",)
    reason: tuple[str, ...] = ("message", "error", "tool_name")
    asked_about: str = "tool_input"
    writers: Mapping[str, str] = field(default_factory=dict)

    @property
    def events(self) -> tuple[str, ...]:
        """Those that have to be hooked, each once."""
        return tuple(dict.fromkeys((*self.also, *(event.partition(":")[0] for event in self.states))))


class Home(Struct, frozen=True):
    """Its private configuration home: the variable that names it, and what in there is a conversation.

    The rest goes when a headless run has ended. With `only_with_key`, a login of the user's stays in use
    where the environment has no key: then the user's own home stays its home.
    """

    variable: str
    conversations: tuple[str, ...] = ()
    only_with_key: bool = False


class Words(Struct, frozen=True):
    """The words for what differs from start to start; {} is the value.

    Without `begin` it chooses the id of a new conversation itself, and tells it. `prompt` is for a pane;
    where `prompts_on_resume` is False, it is not said to one that goes on with a conversation.
    """

    model: tuple[str, ...] = ("--model", "{}")
    begin: tuple[str, ...] = ()
    resume: tuple[str, ...] = ("--resume", "{}")
    prompt: tuple[str, ...] = ("--prompt={}",)
    prompts_on_resume: bool = True


class Ask(Struct, frozen=True):
    """How it answers a question about a directory, and chats about one: `af ask`, `af chat`.

    Command lines as in lctx's config.json, with its placeholders and those of `placeholders`, which are given
    the environment and the directories of the sources. `variables` are the names, or families that end in
    `*`, that its user's own login may need; `more_variables` are those its configuration refers to.
    `files` are laid into the directory that it is started in, where it takes files with the names in
    `instructions` for instructions or settings: no source is called like one. `output` is the form of what
    it prints: `text`, or the events that `Cli.events` reads.
    """

    command: str
    chat: str
    stdin: str | None = "{prompt_file}"
    env: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)
    instructions: tuple[str, ...] = ()
    output: str = "text"
    variables: tuple[str, ...] = ()
    placeholders: Mapping[str, Callable[[Environment, Sequence[str]], str]] = field(default_factory=dict)
    more_variables: Callable[[Environment], tuple[str, ...]] = lambda env: ()


class Cli(Struct, frozen=True):
    """`name` is the runtime's, `binary` the program's; `oldest` and `tried` are versions, `last_major` the
    last major one that can be driven, where a newer one is known that cannot.

    `keys` are the credentials of its vendor, which no other vendor's CLI gets; `variables` is whatever else
    it reads. `pick_keys` leaves out those that the environment or the model makes useless. `login` is None,
    or why it would ask for a login; `has_key` says whether the environment alone logs it in. `bundled` is
    the command of one that comes with us.

    `talk` are the files of one conversation, by patterns below the configuration home, where {id} stands for
    it and {cwd} for the directory it works in; `own_home` is the user's own, below HOME. Without them no
    conversation moves to another machine.

    `config` is the form of a file with MCP servers, `config_file` its name. `notices_dead_mcp` says whether
    it tells when its server is dead or refuses the token; else that is asked before a headless start.
    `temporary` is the variable of the directory for what it leaves behind, by mode; that is emptied.
    `limited` is how it says that a usage limit is reached that time lifts: a regular expression, with a group
    `until` for the time or `after` for the duration that it names (usage_limits.py).
    `interrupt` are the keys that end a turn in its pane; without any nobody can. `unlocks` are words for what
    of the user's own a pane can be let use. `has_door`: in a pane it takes messages beside its screen, from
    the directory `door` of the run. `provider` is whose models it uses, in OpenTelemetry's words, where that
    is one.
    `hides_git_identity`: its commands do not see who the user is to git. `reads_beside`: headless it can be
    let read a directory without being let write there. `worker` is a program of ours around it, headless,
    with what goes to its standard input; without one it gets the prompt there.
    """

    name: str
    title: str = ""
    provider: str = ""
    binary: str = ""
    install: str = ""
    oldest: str = ""
    tried: str = ""
    last_major: int | None = None
    keys: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    pick_keys: Callable[[Environment, str | None], tuple[str, ...]] | None = None
    login: Callable[[Environment, str | None], str | None] = lambda env, model: None
    has_key: Callable[[Environment], bool] = lambda env: True
    bundled: Callable[[], tuple[str, ...] | None] = lambda: None

    home: Home | None = None
    own_home: str = ""
    talk: tuple[str, ...] = ()
    pane: str = ""
    headless: str = ""
    ask: Ask | None = None
    words: Words = Words()
    permissions: Mapping[Permissions, tuple[str, ...]] = field(
        default_factory=lambda: dict.fromkeys(PERMISSIONS, ())
    )
    headless_permissions: Mapping[Permissions, tuple[str, ...]] | None = None

    config: Callable[[tuple[McpServer, ...]], Mapping[str, object]] = claude_form
    config_file: str = "mcp.json"
    transports: tuple[Transport, ...] = ("http", "sse")
    server_name: Callable[[McpServer, Start], str] = lambda server, start: server.name
    flags: Callable[[Start], Sequence[str]] = lambda start: ()
    files: Callable[[Start], Mapping[Path, str]] = lambda start: {}
    environment: Callable[[Start], Mapping[str, str]] = lambda start: {}
    worker: Callable[[Start], tuple[tuple[str, ...], str]] | None = None
    events: Callable[[Start], LineParser] = no_parser
    temporary: Mapping[str, str] = field(default_factory=dict)

    hooks: Hooks = Hooks()
    screen: Screen = Screen()
    limited: str = ""
    own_words: OwnWords = INPUT_LINE
    interrupt: str = "Escape"
    unlocks: tuple[str, ...] = ()
    has_door: bool = False
    notices_dead_mcp: bool = True
    hides_git_identity: bool = False
    reads_beside: bool = True
    tells_version: bool = True
    calls_tools: bool = True
    check_prompt: str = ""

    @property
    def every_variable(self) -> tuple[str, ...]:
        return (*self.keys, *self.variables)

    def own_variables(self, env: Environment, model: str | None) -> tuple[str, ...]:
        """Those it may have, for this model."""
        return self.pick_keys(env, model) if self.pick_keys else self.every_variable

    def hooks_to_json(self, *, prompted: bool) -> dict[str, object]:
        """For launch.json: what the hooks' report has to know."""
        document = asdict(self.hooks)
        ready = document.pop("ready_states")
        states = {**self.hooks.states, **({} if prompted else ready)}
        return {**document, "states": states, "limited": self.limited}

    def is_at_home(self, env: Environment) -> bool:
        """Whether it is started with a private configuration home."""
        return self.home is not None and (not self.home.only_with_key or self.has_key(env))
