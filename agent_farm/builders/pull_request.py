"""What is known of a builder's pull request since it was last looked at: kept beside its run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agent_farm.builders.ref_names import ObjectName


class PullRequest(Struct, frozen=True):
    """`number` is null from the push of its branch until it is open; `state` is as of `at`."""

    forge: Annotated[Literal["gh", "glab"], Meta(description="The program that speaks for the forge")]
    number: int | None
    url: str
    state: Literal["open", "merged", "closed"]
    head: Annotated[ObjectName | None, Meta(description="The commit that the forge has of it")]
    remote: str
    branch: str
    base: Annotated[str, Meta(description="The branch that it was opened for")]
    into: Annotated[str, Meta(description="The branch that it is meant for now")]
    pushed: Annotated[
        tuple[ObjectName, ...], Meta(description="What af has pushed there last, or was about to")
    ]
    at: Annotated[float, Meta(description="When the forge was asked, in seconds since 1970")]

    @property
    def landed_commit(self) -> str | None:
        """What came home by it, in whatever form the forge merged it."""
        return self.head if self.state == "merged" and self.into == self.base else None

    @property
    def tracked(self) -> str:
        """The remote-tracking branch of what was pushed: it is no place where work lands."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    @property
    def short(self) -> str:
        return f"#{self.number} {self.state}" if self.number is not None else "not open yet"

    @property
    def told(self) -> str:
        return f"PR {self.short}"
