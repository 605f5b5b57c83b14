"""What checks found out about a builder's work: stored with its run, and shown with its age."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec
from msgspec import Meta, Struct

ProofState = Literal["proven", "flagged", "red", "conflicts", "uncommitted", "empty", "stale"]

_SIGNS = {"proven": "✓", "flagged": "!"}


class Flag(Struct, frozen=True):
    """Something in the diff that a person should look at; `line` is 0 if it concerns the whole file."""

    kind: str
    file: str
    line: int
    text: str

    @property
    def told(self) -> str:
        place = f"{self.file}:{self.line}" if self.line else self.file
        return f"{place}: {self.text}" if place else self.text


class CheckFacts(Struct, frozen=True):
    """The result of one check on the work merged into its target."""

    name: str
    command: str
    passed: bool
    exit_code: Annotated[int | None, Meta(description="Null when a signal or the time limit ended it")]
    timed_out: bool
    changed: Annotated[tuple[str, ...], Meta(description="Tracked files that it left changed")]
    unsteady: Annotated[bool, Meta(description="It has both passed and failed on this tree")]
    at: Annotated[float, Meta(description="When it started, in seconds since 1970")]
    seconds: float
    log: Annotated[str, Meta(description="The file with its output")]


class Proof(Struct, frozen=True):
    """The result for the commit `work` merged into `target`, which is the tip of the branch `into`.

    `state` is `proven` when there are commits, nothing is uncommitted, every check passed on the two merged,
    and the diff has no flags; `flagged` when only flags stand against it; otherwise it names the first thing
    that does. `stale`: the work or the target has moved since, or the declared checks have changed.
    """

    state: ProofState
    reason: Annotated[str | None, Meta(description="Why it is not proven")]
    work: str
    into: str
    target_ref: str
    target: str
    tree: Annotated[str | None, Meta(description="The tree that was checked; null when nothing was")]
    at: Annotated[float, Meta(description="When it was judged, in seconds since 1970")]
    checks: tuple[CheckFacts, ...] = ()
    flags: Annotated[
        tuple[Flag, ...], Meta(description="What to look at in the diff, whatever the checks say")
    ] = ()
    evidence: Annotated[tuple[str, ...], Meta(description="Uncommitted or conflicting files")] = ()

    @property
    def passed(self) -> bool:
        """Whether every check passed and still counts; a person judges whether the diff weakens them."""
        return self.state in _SIGNS

    @property
    def mark(self) -> str:
        """One sign for a line of a table: ✓, ! for flagged, either in brackets once stale, or ✗."""
        if self.state in ("uncommitted", "empty"):
            return ""
        if self.state == "stale":
            was = (self.reason or "").rpartition(" ")[2]
            return f"({_SIGNS[was]})" if was in _SIGNS else ""
        return _SIGNS.get(self.state) or ("✗!" if self.flags else "✗")

    def judged_now(self, *, work: str | None, target: str | None, changed: bool) -> Proof:
        """The proof for what is checked out now; None stands for unknown."""
        if work is not None and work != self.work:
            why = "the work has moved"
        elif target is not None and target != self.target:
            why = f"{self.into} has moved"
        elif changed and self.passed:
            why = "something is not committed"
        elif not changed and self.state == "uncommitted":
            why = "all is committed"
        else:
            return self
        return self._stale(why)

    def under(self, commands: Sequence[str] | None) -> Proof:
        """The proof if `commands` are the declared checks; None stands for unknown."""
        ran = [check.command for check in self.checks]
        wanted = list(commands or ())
        if commands is None or not ran or ran == (wanted if self.passed else wanted[: len(ran)]):
            return self
        return self._stale("the checks have changed")

    def _stale(self, why: str) -> Proof:
        """A proof that is stale already keeps its first reason."""
        if self.state == "stale":
            return self
        return msgspec.structs.replace(self, state="stale", reason=f"{why}; it was {self.state}")
