"""Cli: an AI CLI described as data. Each CLI has a file with one; `engine.py` drives it in every mode.

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
HOOK_SECONDS = 30  # far more than a hook takes: a CLI continues without a server that is too late


class Start(Struct, frozen=True):
    """Everything that one start of a runtime depends on.

    `env` is what it gets; an adapter only adds names of its own. `place` is this start's own directory: a
    builder's run directory, or one that is removed after a headless run. `home` is where its private
    configuration home is, which may outlive the start and holds its conversations. `top` is the checkout that
    contains `cwd`, `builder` the builder whose pane it is. `report` is the command that its hooks run, with
    their payload on standard input; `await_tools` is one that ends once the server has listed its tools.
    Without `server` it gets an empty MCP configuration, strictly. `resume` continues `conversation_id`.
    `skills` is the directory whose `skills/` may run unasked, headless. `unlocked` are words from
    `Cli.unlocks`.
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
        """The report command for CLIs that only take a shell command line, every word quoted."""
        return shlex.join(self.report)

    @property
    def servers(self) -> tuple[McpServer, ...]:
        return (self.server,) if self.server else ()


class Screen(Struct, frozen=True):
    """Regular expressions for a pane's text, only used to hold back a message or to correct a stale state.

    `ready` matches an empty input line, `draft` one with unsent text, `dialog` a question that Enter would
    answer, `working` a running turn, `failed` an error after which it waits for a person, `interrupted` what
    it prints when a person has ended the turn. An empty string matches nothing; matching is by line
    (MULTILINE), and the lowest match on the screen counts. With `shows_work`, a turn is only running while
    `working` can be seen, however often the rest is redrawn.
    """

    ready: str = ""
    draft: str = ""
    dialog: str = ""
    working: str = ""
    failed: str = ""
    interrupted: str = ""
    shows_work: bool = False


class Hooks(Struct, frozen=True):
    """What its hooks report from a pane, and where in their payloads; `pane/report.py` gets it in
    launch.json.

    `states` maps "EVENT" or "EVENT:kind" to a state; an event not in it changes nothing. `ready_states` only
    count for a start without a prompt, where no later event would make it working. `submitted` is the event
    of a message that has reached the model, "" if no hook reports that. `unsure` are events of waiting whose
    cause, or whose end (an answered dialog), only the screen shows. `also` are events hooked for what they
    carry. With `wants_reply`, a hook command has to answer JSON.

    Of several payload fields, the first with text counts. `asked_about` is the field with what a tool that
    needs permission would be used on; `writers` maps each tool that writes a file to the field that names the
    file.
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
        """The events to hook, each once."""
        return tuple(dict.fromkeys((*self.also, *(event.partition(":")[0] for event in self.states))))


class Home(Struct, frozen=True):
    """Its private configuration home: the variable that names it, and what in it belongs to a conversation.

    The rest is deleted after a headless run. With `only_with_key`, a user's login stays in use if the
    environment has no key: then the user's own home remains its home.
    """

    variable: str
    conversations: tuple[str, ...] = ()
    only_with_key: bool = False


class Words(Struct, frozen=True):
    """The words that differ from start to start; {} is replaced by the value.

    Without `begin`, the CLI chooses the id of a new conversation itself, and reports it. `prompt` is for a
    pane; if `prompts_on_resume` is False, it is left out when a conversation is continued.
    """

    model: tuple[str, ...] = ("--model", "{}")
    begin: tuple[str, ...] = ()
    resume: tuple[str, ...] = ("--resume", "{}")
    prompt: tuple[str, ...] = ("--prompt={}",)
    prompts_on_resume: bool = True


class Ask(Struct, frozen=True):
    """How it answers a question about directories, or chats about one: `af ask`, `af chat`.

    The command lines are like those in lctx's config.json, with its placeholders and those in `placeholders`,
    which are computed from the environment and the sources' directories. `variables` are names, or prefixes
    ending in `*`, that the user's own login may need; `more_variables` are those that its configuration
    refers to. `files` are written into the directory that it is started in, where it reads files named in
    `instructions` as instructions or settings, so that no source may have such a name. `output` is the format
    of its output: `text`, or the events that `Cli.events` reads.
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
    """`name` is the runtime's, `binary` the program's; `oldest` and `tried` are versions, `last_major` is the
    last major version that af can drive, if there is a newer one that it cannot.

    `keys` are the credentials for its provider, which no other provider's CLI gets; `variables` is everything
    else it reads. `pick_keys` leaves out those that the environment or the model makes useless. `login`
    returns None, or why it would ask for a login; `has_key` says whether the environment alone logs it in.
    `bundled` returns the command of one that comes with af.

    `talk` are patterns for the files of one conversation below the configuration home, where {id} is the
    conversation and {cwd} the directory it works in; `own_home` is the user's own configuration home, below
    HOME. Without them, no conversation moves to another machine.

    `config` makes the content of a file with MCP servers, `config_file` is its name. `notices_dead_mcp`: it
    reports a server that is dead or refuses the token; otherwise af checks that before a headless start.
    `temporary` is, by mode, the variable for a directory in which it leaves files; that directory is emptied.
    `limited` matches its message that a usage limit is reached which will be lifted: a regular expression
    with a group `until` for the time or `after` for the duration that it names (usage_limits.py). `interrupt`
    are the keys that end a turn in its pane; "" if nothing can. `unlocks` are words for what a pane may be
    allowed to use of the user's own. `has_door`: in a pane it also takes messages from the directory `door`
    of the run, not only from its screen. `provider` is whose models it uses, as named by OpenTelemetry, if it
    is one. `hides_git_identity`: its commands do not see the user's git identity. `reads_beside`: headless,
    it can be allowed to read a directory without being allowed to write there. `worker` makes the command of
    a program of ours around it, headless, and that program's standard input; without a worker, it gets the
    prompt there. `before_resume` prepares the home of a pane that continues a conversation.
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
    before_resume: Callable[[Start], None] = lambda start: None
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
        """The variables it gets, for this model."""
        return self.pick_keys(env, model) if self.pick_keys else self.every_variable

    def hooks_to_json(self, *, prompted: bool) -> dict[str, object]:
        """For launch.json: what the hooks' report needs to know."""
        document = asdict(self.hooks)
        ready = document.pop("ready_states")
        states = {**self.hooks.states, **({} if prompted else ready)}
        return {**document, "states": states, "limited": self.limited}

    def is_at_home(self, env: Environment) -> bool:
        """Whether it is started with a private configuration home."""
        return self.home is not None and (not self.home.only_with_key or self.has_key(env))
