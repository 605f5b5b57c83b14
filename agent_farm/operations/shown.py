"""A builder as every verb shows it: its record and its present state."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING, Annotated

from msgspec import Meta, Struct, structs

from agent_farm.builders.events import Usage
from agent_farm.builders.proof import Proof
from agent_farm.builders.pull_request import PullRequest
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import State, Status
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import Builder, list_builders, read_started_status

if TYPE_CHECKING:
    from agent_farm.farm.git_state import GitState

_Moment = Annotated[float | None, Meta(description="Seconds since 1970, or null if unknown")]


class StatusShown(Struct, frozen=True):
    state: State
    source: Annotated[str, Meta(description="Source of the state: hook, launcher, process or screen")]
    at: _Moment
    exit_code: int | None
    reason: str | None
    cut_short: Annotated[bool, Meta(description="Whether it ended, or came back, in the middle of a turn")]

    @classmethod
    def of(cls, status: Status) -> StatusShown:
        return cls(**{name: getattr(status, name) for name in cls.__struct_fields__})


class GitShown(Struct, frozen=True):
    """About what is checked out, which need not be the builder's own branch."""

    dirty: Annotated[int | None, Meta(description="Number of uncommitted changed files")]
    untracked: int | None
    ahead: Annotated[int | None, Meta(description="Number of commits that the base lacks; null if unknown")]
    behind: Annotated[
        int | None, Meta(description="Number of commits of the base that it lacks; null if unknown")
    ]
    missing: Annotated[
        str | None, Meta(description="base or branch, if one of them is gone and nothing is counted")
    ]
    landed: Annotated[
        bool | None,
        Meta(
            description="Whether every commit is on the base, the main checkout's HEAD or a remote, even"
            " rebased or squashed; null if unknown"
        ),
    ]
    has_commits: Annotated[
        bool, Meta(description="Whether it has commits of its own; if not, `landed` says nothing")
    ]
    branch: Annotated[str | None, Meta(description="What is checked out; null when HEAD is detached")]
    commit: str | None
    operation: Annotated[
        str | None, Meta(description="A git operation in progress there, such as a rebase or merge")
    ]
    problem: Annotated[
        str | None,
        Meta(
            description="Why git is not asked there: no tree, or not ours if path, .git and git's own record"
            " of the worktree disagree"
        ),
    ]
    reason: Annotated[str | None, Meta(description="The problem in full")]
    base_follows: Annotated[str | None, Meta(description="The remote branch that the base tracks")]
    base_behind: Annotated[
        int | None, Meta(description="Number of that branch's commits that the base lacks")
    ]
    at: _Moment

    @classmethod
    def of(cls, state: GitState) -> GitShown:
        return cls(**{name: getattr(state, name) for name in cls.__struct_fields__})


class BuilderShown(BuilderRecord, kw_only=True, frozen=True, forbid_unknown_fields=False):
    """What `af` has on record about a builder, and its state when the verb looked.

    `task_text` holds the beginning of a long task; the whole text is in `prompt_file`.
    """

    title: Annotated[str, Meta(description="What it is for, in one line")]
    status: StatusShown
    git: Annotated[GitShown | None, Meta(description="Null if git was not asked, or did not answer in time")]
    usage: Annotated[
        Usage | None, Meta(description="Of the whole conversation; null if the runtime does not report it")
    ]

    proof: Annotated[
        Proof | None,
        Meta(description="What checks said about its work; null if none ran, or git was not asked"),
    ]

    pull_request: Annotated[
        PullRequest | None, Meta(description="Its state when the forge was last asked; null if there is none")
    ]

    host: Annotated[str | None, Meta(description="Machine of the fleet that it is on; null: this one")] = None
    seen_at: Annotated[
        float | None,
        Meta(
            description="When its machine last reported it, if it has not answered since; seconds since 1970"
        ),
    ] = None

    def __post_init__(self) -> None:
        """Skips the record's own checks, which were made when it was read."""

    @classmethod
    def of(cls, builder: Builder) -> BuilderShown:
        record = builder.record
        return cls(
            **structs.asdict(record),
            title=record.title,
            status=StatusShown.of(builder.status),
            git=GitShown.of(builder.git) if builder.git else None,
            usage=builder.usage,
            proof=builder.proof,
            pull_request=builder.pull_request,
            host=builder.host,
            seen_at=builder.seen_at,
        )


def show_all(builders: Iterable[Builder]) -> tuple[BuilderShown, ...]:
    return tuple(map(BuilderShown.of, builders))


def show_builder(farm: Farm, id: str) -> BuilderShown:
    """A builder that was just brought back: git knows nothing about it yet."""
    return BuilderShown.of(list_builders(farm, [id], with_git=False)[0])


def show_started(farm: Farm, record: BuilderRecord) -> BuilderShown:
    """A builder that was just started: nothing has to be asked."""
    return BuilderShown.of(Builder(record, read_started_status(farm, record)))
