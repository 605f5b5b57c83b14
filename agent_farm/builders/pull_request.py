"""A builder's pull request as of the last look at the forge, stored with its run."""

from __future__ import annotations

from typing import Annotated, Literal

from msgspec import Meta, Struct

from agent_farm.builders.ref_names import ObjectName


class PullRequest(Struct, frozen=True):
    """`number` is null between the push of the branch and the opening; `state` is as of `at`."""

    forge: Annotated[Literal["gh", "glab"], Meta(description="The forge's command-line program")]
    number: int | None
    url: str
    state: Literal["open", "merged", "closed"]
    head: Annotated[ObjectName | None, Meta(description="The commit that the forge has")]
    remote: str
    branch: str
    base: Annotated[str, Meta(description="The branch that it was opened for")]
    into: Annotated[str, Meta(description="The branch that it targets now")]
    pushed: Annotated[
        tuple[ObjectName, ...], Meta(description="The commit that af pushed last, or was about to push")
    ]
    at: Annotated[float, Meta(description="When the forge was asked, in seconds since 1970")]

    @property
    def landed_commit(self) -> str | None:
        """The commit of the work that landed through it, in whatever form the forge merged it."""
        return self.head if self.state == "merged" and self.into == self.base else None

    @property
    def tracked(self) -> str:
        """The remote-tracking branch of what was pushed; work does not land on it."""
        return f"refs/remotes/{self.remote}/{self.branch}"

    @property
    def short(self) -> str:
        return f"#{self.number} {self.state}" if self.number is not None else "not open yet"

    @property
    def told(self) -> str:
        return f"PR {self.short}"
