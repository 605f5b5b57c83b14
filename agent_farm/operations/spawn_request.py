"""The request of a spawn, and the mode that its options select."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Annotated, Any

from msgspec import Meta, Struct

from agent_farm.errors import UsageError
from agent_farm.operations.builders import Yes
from agent_farm.operations.operation import Request
from agent_farm.runtimes.cli import Permissions

EXAMPLES = (
    ("spec", "af spawn --project 0009"),
    ("task", 'af spawn "Fix the login redirect" --files src/auth.py,src/login.py'),
    ("issue", "af spawn --issue 42"),
    ("item", "af spawn --spec specs/003-login --item T012"),
    ("protocol", 'af spawn --protocol experiment --args \'{"hypothesis": "Redis is faster"}\''),
    ("shell", "af spawn --shell"),
)
_TASK_EXAMPLE, _PROTOCOL_EXAMPLE = dict(EXAMPLES)["task"], dict(EXAMPLES)["protocol"]


class Spawn(Request):
    """A task, project, issue, protocol or shell; a project or issue can be combined with a protocol."""

    task: Annotated[str | None, Meta(description="What the builder should do")] = None
    project: Annotated[str | None, Meta(description="Implement the spec with this id, as in 0042")] = None
    issue: Annotated[
        str | None, Meta(description="Work on this issue of GitHub or GitLab: its number, or its address")
    ] = None
    spec: Annotated[
        str | None,
        Meta(
            description="Work on this spec: a folder of spec-kit, Kiro or OpenSpec, a Markdown check list "
            "or .beads"
        ),
    ] = None
    item: Annotated[
        str | None,
        Meta(description="Only this task of the spec, as in T012; all: a builder for each, in order"),
    ] = None
    protocol: Annotated[str | None, Meta(description="Run the protocol of this name")] = None
    shell: Annotated[bool, Meta(description="Start the runtime with neither prompt nor role")] = False
    files: Annotated[
        tuple[str, ...], Meta(description="Files that matter for the task, in the repository")
    ] = ()
    args: Annotated[
        dict[str, Any] | str | None, Meta(description="Arguments of the protocol; a JSON object")
    ] = None
    role: Annotated[str | None, Meta(description="System prompt to use: a file")] = None
    no_role: Annotated[bool, Meta(description="Use no system prompt")] = False
    runtime: Annotated[str | None, Meta(description="Runtime to start; af runtimes lists them")] = None
    model: Annotated[str | None, Meta(description="Model to ask the runtime for")] = None
    permissions: Annotated[
        Permissions | None,
        Meta(
            description="What the builder may do without asking: ask: nothing; edit: change files in its "
            "worktree, but run no command; all: everything. Default: spawn.permissions, else edit"
        ),
    ] = None
    base: Annotated[
        str | None, Meta(description="Revision to start from; default: spawn.base, else HEAD of the checkout")
    ] = None
    fetch: Annotated[bool, Meta(description="Fetch from the base's remote first, and start from there")] = (
        False
    )
    sparse: Annotated[
        tuple[str, ...],
        Meta(
            description="Check out only these directories, with those that the task names; default:"
            " spawn.sparse; .: everything this checkout has"
        ),
    ] = ()
    branch: Annotated[str | None, Meta(description="Continue this existing branch")] = None
    name: Annotated[
        str | None, Meta(description="Id of the builder, and of its branch builder/NAME, as in login-fix")
    ] = None
    after: Annotated[
        str | None,
        Meta(description="Start once these builders' work has landed, from where it landed; ids with commas"),
    ] = None
    stack: Annotated[
        str | None,
        Meta(description="Start on the work of this builder now; sync moves it once that has landed"),
    ] = None
    no_queue: Annotated[
        bool, Meta(description="Fail instead of waiting if limits.max_builders are running already")
    ] = False
    tasks: Annotated[
        str | None,
        Meta(
            description="Several tasks, a builder for each: paragraphs, the open items of a Markdown check "
            "list, or a JSON object on each line with the fields of this request"
        ),
    ] = None
    copies: Annotated[int, Meta(ge=1, le=100, description="Number of builders for each task")] = 1
    runtimes: Annotated[
        tuple[str, ...],
        Meta(description="Runtimes to assign to the builders in turn; alone, one builder each"),
    ] = ()
    ephemeral: Annotated[
        bool, Meta(description="Prune the builder when its runtime ends, if its work has landed")
    ] = False
    dry_run: Annotated[bool, Meta(description="Show what would be created, and create nothing")] = False
    on: Annotated[
        str | None,
        Meta(description="Machine of the fleet to start it on, fleet: any, or local; default: spawn.on"),
    ] = None
    yes: Yes = False

    @property
    def is_several(self) -> bool:
        return self.tasks is not None or self.copies > 1 or bool(self.runtimes)


class ProtocolMode(Struct, frozen=True):
    name: str
    args: Mapping[str, Any] | None = None


class SpecMode(Struct, frozen=True):
    project: str
    protocol: ProtocolMode | None = None


class IssueMode(Struct, frozen=True):
    reference: str
    protocol: ProtocolMode | None = None


class ItemMode(Struct, frozen=True):
    """Everything open in a spec that another tool wrote, or one item."""

    spec: str
    item: str | None = None


class TaskMode(Struct, frozen=True):
    text: str
    files: tuple[str, ...] = ()


class ShellMode(Struct, frozen=True):
    pass


Mode = SpecMode | IssueMode | ItemMode | TaskMode | ProtocolMode | ShellMode

_HELP = "af spawn --help"
# Options that say what to do; --protocol says how.
_SUBJECTS = ("--project", "--issue")


def choose_mode(asked: Spawn) -> Mode:
    """Exactly one mode, or a UsageError that names the flags that exclude each other."""
    _require_one_mode(asked)
    if asked.files and asked.task is None:
        raise UsageError("--files requires a task", hint='af spawn "Fix auth" --files src/auth.py')
    if asked.args is not None and asked.protocol is None:
        raise UsageError("--args requires --protocol", hint=_PROTOCOL_EXAMPLE)
    if asked.item is not None and asked.spec is None:
        raise UsageError("--item requires --spec", hint=dict(EXAMPLES)["item"])
    protocol = None
    if asked.protocol is not None:
        protocol = ProtocolMode(_required(asked.protocol.rstrip("/"), "--protocol"), parse_args(asked.args))
    if asked.project is not None:
        if asked.name is not None:
            raise UsageError("Cannot combine --name with --project", why="Its builder has the project's id.")
        return SpecMode(_required(asked.project, "--project"), protocol)
    if asked.issue is not None:
        return IssueMode(_required(asked.issue, "--issue"), protocol)
    if asked.spec is not None:
        item = None if asked.item is None else _required(asked.item, "--item").strip()
        return ItemMode(_required(asked.spec, "--spec"), item)
    if protocol is not None:
        return protocol
    if asked.shell:
        return ShellMode()
    if asked.task is None:
        raise UsageError(
            "Nothing to spawn",
            why="Say what the builder should do, in one of these ways.",
            evidence=[f"{name:<9} {example}" for name, example in EXAMPLES],
            hint=_HELP,
        )
    return TaskMode(_not_a_number(require_task_text(asked.task)), asked.files)


def _require_one_mode(asked: Spawn) -> None:
    """A protocol may be combined with what it is run for; everything else excludes the rest."""
    exclusive = [
        name
        for name, given in (
            ("--project", asked.project is not None),
            ("--issue", asked.issue is not None),
            ("--spec", asked.spec is not None),
            ("--protocol", asked.protocol is not None),
            ("--shell", asked.shell),
        )
        if given
    ]
    has_text = asked.task is not None
    is_one = len(exclusive) == 2 and exclusive[0] in _SUBJECTS and exclusive[1] == "--protocol"
    if len(exclusive) > 1 and not is_one:
        raise UsageError(f"Flags are mutually exclusive: {', '.join(exclusive)}", hint=_HELP)
    if has_text and exclusive[:1] == ["--project"]:
        raise UsageError("Cannot combine --project with task text", hint=_HELP)
    if has_text and exclusive == ["--protocol"]:
        raise UsageError("Cannot combine task text with --protocol", hint=_HELP)
    if has_text and exclusive:
        raise UsageError(f"Flags are mutually exclusive: task text, {exclusive[0]}", hint=_HELP)


def _not_a_number(text: str) -> str:
    """`af spawn 42` is meant as an issue or a project; as a task it would tell a runtime nothing."""
    number = text.strip().removeprefix("#")
    if not (number.isascii() and number.isdigit()):
        return text
    raise UsageError(
        f"{text.strip()} alone is not a task",
        why="Say whether it is an issue or a project.",
        evidence=[f"issue     af spawn --issue {number}", f"project   af spawn --project {number}"],
        hint=_HELP,
    )


def _required(value: str, flag: str) -> str:
    if not value.strip():
        raise UsageError(f"{flag} is empty", hint=_HELP)
    return value


def require_task_text(text: str) -> str:
    if not text.strip():
        raise UsageError("The task text is empty", hint=_TASK_EXAMPLE)
    if "\0" in text:
        raise UsageError("The task text contains a NUL byte", why="It cannot be passed to a program.")
    try:
        text.encode()
    except UnicodeEncodeError as error:
        raise UsageError(
            "The task text is not valid UTF-8", why=f"The first bad byte is at character {error.start}."
        ) from error
    return text


def parse_args(args: Mapping[str, Any] | str | None) -> Mapping[str, Any] | None:
    """The object, or a UsageError that says where it breaks.

    What only Python accepts as JSON (NaN, half a surrogate pair) is refused, because the prompt has to show
    it.
    """
    if args is None:
        return None
    text = args if isinstance(args, str) else json.dumps(args)
    try:
        value = json.loads(text)
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except json.JSONDecodeError as error:
        raise _not_json(f"{error.msg} at line {error.lineno}, column {error.colno}.") from error
    except UnicodeEncodeError as error:
        raise _not_json("A text in it is not valid UTF-8.") from error
    except (ValueError, RecursionError) as error:
        raise _not_json(f"{error}.") from error
    if not isinstance(value, dict):
        raise UsageError(
            "--args must be a JSON object", why=f"It is {text.strip()[:60]}", hint=_PROTOCOL_EXAMPLE
        )
    return value


def _not_json(why: str) -> UsageError:
    return UsageError("--args is not valid JSON", why=why, hint=_PROTOCOL_EXAMPLE)
