"""`list_sources`, `ask_sources`, `sources_…`: local directories, files and repositories to ask about."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from msgspec import Meta

from agent_farm.ask.agents import DEFAULT_AGENT
from agent_farm.ask.config_file import ConfigManager
from agent_farm.ask.sources_manager import Source, SourcesManager
from agent_farm.ask.targets import Kind
from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.operations.declare import acts, in_parts, reads
from agent_farm.operations.operation import (
    SESSIONS,
    Answer,
    Context,
    Door,
    Failure,
    Nothing,
    OfSeveral,
    Request,
    gathered,
)
from agent_farm.runtimes import adapter_names

if TYPE_CHECKING:
    from agent_farm.ask.subagent_runner import SubagentRunner

LONGEST_FOR_PROGRAMS = 900.0
# Only the user decides what an AI may read on this machine.
_PERSONS: frozenset[Door] = frozenset({"http"})

Name = Annotated[str, Meta(description="Name of the source")]


class SourceShown(Answer):
    """`path` is what is read. `problem` says why it cannot be; null if it can."""

    name: str
    type: Kind
    path: str
    url: Annotated[str | None, Meta(description="URL of a git repository, without a password")]
    branch: str | None
    commit: str | None
    problem: str | None

    @classmethod
    def of(cls, source: Source) -> SourceShown:
        own: dict[str, Any] = {"type": source.kind, "path": str(source.path), "url": source.shown_url}
        names = [name for name in cls.__struct_fields__ if name not in own]
        return cls(**own, **{name: getattr(source, name) for name in names})


class AllSources(Answer):
    sources: tuple[SourceShown, ...]


class OneSource(Answer):
    source: SourceShown


def manager(context: Context) -> SourcesManager:
    return SourcesManager(ConfigManager(), narrate=context.tell)


@reads("List the user's local sources, and what is wrong with them", who=SESSIONS)
def list_sources(context: Context, request: Nothing) -> AllSources:
    return AllSources(tuple(map(SourceShown.of, manager(context).overview())))


class AskSources(Request):
    question: Annotated[str, Meta(description="The question")]
    sources: Annotated[
        tuple[str, ...], Meta(description="Sources to read, or groups of them, by their names")
    ] = ()
    agent: Annotated[
        str | None,
        Meta(description="Agent that answers; default: the one in config.json, else spawn.runtime"),
    ] = None
    timeout: Annotated[
        Annotated[float, Meta(gt=0)] | None, Meta(description="End it after this many seconds")
    ] = None


class Answered(Answer):
    answer: str


@reads(
    "Have the user's own AI CLI answer a question from the named sources; it sees them and no MCP server",
    pool="ask",
    who=SESSIONS,
    outside=True,
)
def ask_sources(context: Context, request: AskSources) -> Answered:
    seconds = request.timeout
    if context.butlers is not None:
        seconds = min(seconds or LONGEST_FOR_PROGRAMS, LONGEST_FOR_PROGRAMS)
    asked = runner(context, request.agent)
    return Answered(asked.ask(sources=request.sources, question=request.question, timeout=seconds)["answer"])


def runner(context: Context, agent: str | None) -> SubagentRunner:
    """The named agent, else the default one, which the farm's runtime may choose."""
    from agent_farm.ask.subagent_runner import SubagentRunner

    known = manager(context)
    if agent and agent not in known.config.agent_names:
        _require_no_runtime(context, agent)
    return SubagentRunner(
        known.config, known, narrate=context.tell, agent=agent or _default(context, known.config)
    )


def _default(context: Context, config: ConfigManager) -> str:
    """Says so if it is not the farm's runtime: a question goes to the provider of whatever answers."""
    runtime = _farm_runtime(context)
    chosen = config.agent_for(runtime)
    if runtime and chosen == DEFAULT_AGENT != runtime:
        context.tell(f"spawn.runtime is {runtime}, which af ask does not use; {chosen} answers instead")
    return chosen


def _require_no_runtime(context: Context, name: str) -> None:
    farm = context.farm_if_there
    if name in adapter_names(farm.root if farm else None):
        raise UsageError(
            f"af ask does not use the runtime {name}",
            why="It only uses CLIs that can be limited to the sources. An ACP agent or another program"
            " decides by itself what it reads; af run can use it.",
            hint=f"af ask --agent {DEFAULT_AGENT} …",
        )


def _farm_runtime(context: Context) -> str | None:
    """Questions can also be asked outside a farm."""
    farm = context.farm_if_there
    return farm.settings.text("spawn.runtime") if farm and not farm.settings.problems else None


class NamedSource(Request):
    name: Name


@reads("Show one source")
def sources_show(context: Context, request: NamedSource) -> OneSource:
    return OneSource(SourceShown.of(manager(context).get(request.name)))


class SourcesAdd(Request):
    name: Name
    target: Annotated[str, Meta(description="A path, or the URL of a git repository")]
    kind: Annotated[Kind | None, Meta(description="Kind of source, if it is not obvious")] = None
    branch: Annotated[str | None, Meta(description="Follow this branch or tag (git)")] = None
    commit: Annotated[str | None, Meta(description="Stay at this commit (git)")] = None


@acts(
    "Add a source",
    tolerant=True,
    outside=True,
    doors=_PERSONS,
    details="A git repository is cloned; a directory or file is read in place.",
)
def sources_add(context: Context, request: SourcesAdd) -> OneSource:
    added = manager(context).add(
        request.name, request.target, kind=request.kind, branch=request.branch, commit=request.commit
    )
    return OneSource(SourceShown.of(added))


class RemovedSource(Answer):
    """`kept` is where its clone stays, if somebody has worked in it."""

    removed: str
    kept: str | None


@acts(
    "Remove a source",
    effect="destroys",
    tolerant=True,
    doors=_PERSONS,
    details="Your own files stay; a clone is deleted unless somebody has worked in it.",
)
def sources_remove(context: Context, request: NamedSource) -> RemovedSource:
    kept = manager(context).remove(request.name)
    return RemovedSource(request.name, str(kept) if kept else None)


class SourcesUpdate(Request):
    names: Annotated[tuple[str, ...], Meta(description="Names of sources; default: all git ones")] = ()


class UpdatedSources(OfSeveral):
    sources: tuple[SourceShown, ...]


@in_parts(
    "Update git sources from their remotes; without names, all of them",
    gathered(UpdatedSources, sources=SourceShown, failed=Failure),
    effect="changes",
    tolerant=True,
    repeats=True,
    outside=True,
    doors=_PERSONS,
)
def sources_update(context: Context, request: SourcesUpdate) -> Iterator[SourceShown | Failure]:
    known = manager(context)
    for name in request.names or [source.name for source in known.list() if source.kind == "git"]:
        try:
            yield SourceShown.of(known.update(name))
        except AgentFarmError as error:
            if len(request.names) == 1:
                raise
            yield Failure.of(name, error)
