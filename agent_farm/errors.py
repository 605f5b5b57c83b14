"""Every failure that a user can cause, as a tree of exceptions.

    AgentFarmError            1    expected failure
    ├── UsageError            2    usage error
    ├── NotFound              1    no such builder, revision, protocol, …
    ├── DamagedFile           1    a file of ours that cannot be read
    │   ├── NewerFile         1    written by a newer version
    │   └── ForeignFile       1    somebody else may have written it
    ├── LockTaken             1    another process is at it
    ├── ConsentNeeded         1    a command or copy from the repository that nobody has agreed to
    ├── ToolMissing           1    git, tmux or a runtime is not usable
    ├── WorkWouldBeLost       4    refused, because it exists nowhere else
    ├── OtherWork             4    a branch holds commits that are not in what is checked out
    ├── NoRoom                1    no place for one more, here or on a machine
    ├── Unreachable           1    another machine could not be asked
    │   └── Overdue           1    it has not answered yet
    ├── NotDelivered          5    held, or not confirmed
    └── TimedOut            124

Rooms have errors of their own below AgentFarmError, which all end with 1. An error says what went wrong,
why, and the next command; `cli/` renders all three, as text or as JSON.
Anything else that reaches `cli/` is a bug and ends with exit code 3.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from typing import Any


class AgentFarmError(Exception):
    code = "error"
    exit_code = 1
    consent: str | None = None

    def __init__(
        self,
        what: str,
        *,
        why: str | None = None,
        hint: str | None = None,
        evidence: Iterable[str] = (),
    ) -> None:
        super().__init__(what)
        self.what = what
        self.why = why
        self.hint = hint
        self.evidence = tuple(evidence)

    @property
    def document(self) -> dict[str, Any]:
        """The same at every door."""
        names = ("code", "what", "why", "hint", "evidence", "consent")
        return {name: getattr(self, name) for name in names}

    @property
    def sentence(self) -> str:
        """What and why, for places with room for one line."""
        return f"{self.what}: {self.why}" if self.why else self.what


def error_of(
    code: str,
    what: str,
    *,
    why: str | None,
    hint: str | None,
    evidence: Iterable[str],
    consent: str | None = None,
) -> AgentFarmError:
    """An error rebuilt from its code and words, of its class in the tree above if it has one."""
    error = KINDS.get(code, AgentFarmError)(what, why=why, hint=hint, evidence=evidence)
    error.code = code
    error.consent = consent
    return error


def as_farm_error(error: AgentFarmError | OSError, what: str | None = None) -> AgentFarmError:
    """A system error (a full disk, no permission) as the failure `what` that it caused, or on its own."""
    if isinstance(error, AgentFarmError):
        return error
    if what is not None:
        return AgentFarmError(what, why=str(error))
    where = f": {error.filename}" if error.filename else ""
    return AgentFarmError(f"{error.strerror or error}{where}")


def in_one_line(error: Exception) -> str:
    """An expected error or a system error, with its reason."""
    return error.sentence if isinstance(error, AgentFarmError) else str(error)


class UsageError(AgentFarmError):
    code = "usage"
    exit_code = 2


class NotFound(AgentFarmError):
    code = "not-found"


class DamagedFile(AgentFarmError):
    code = "damaged-file"


class NewerFile(DamagedFile):
    code = "newer-file"

    @classmethod
    def of(cls, file: object, version: int, own: int) -> NewerFile:
        return cls(
            f"{file} has version {version}; this af reads version {own}",
            why="A newer af wrote it.",
            hint="pip install --upgrade codev-agent-farm",
        )


class ForeignFile(DamagedFile):
    code = "foreign-file"


class LockTaken(AgentFarmError):
    code = "locked"


class ConsentNeeded(AgentFarmError):
    """`consent`, given as the `yes` of the same request, approves exactly what `evidence` shows."""

    code = "consent-needed"


class ToolMissing(AgentFarmError):
    code = "tool-missing"


class WorkWouldBeLost(AgentFarmError):
    code = "work-would-be-lost"
    exit_code = 4


class OtherWork(AgentFarmError):
    """The builder's branch holds commits that are not in what its worktree has checked out."""

    code = "other-work"
    exit_code = 4


class NoRoom(AgentFarmError):
    """Not a failure for those that wait: they keep waiting."""

    code = "no-room"


class Unreachable(AgentFarmError):
    """Says nothing about the state there. `began` is False if the request cannot have been begun."""

    code = "unreachable"
    began = True


class Overdue(Unreachable):
    """It has not answered in the time it was given; it may still answer later."""

    code = "overdue"


class NotDelivered(AgentFarmError):
    code = "not-delivered"
    exit_code = 5


class TimedOut(AgentFarmError):
    code = "timed-out"
    exit_code = 124


_TREE = (
    AgentFarmError, UsageError, NotFound, DamagedFile, NewerFile, ForeignFile, LockTaken, ConsentNeeded,
    ToolMissing, WorkWouldBeLost, OtherWork, NoRoom, Unreachable, Overdue, NotDelivered, TimedOut,
)  # fmt: skip
KINDS = {kind.code: kind for kind in _TREE}
# The codes of the rooms' own errors: beside the tree's, what another machine may call its error.
CODES_OF_ROOMS = frozenset(
    {
        "agent-failed", "butler", "checkpoint", "clock-jumped", "forge", "git", "hook-refused", "include",
        "invalid-template", "merge-refused", "missing-variable", "no-commit", "not-landed", "not-readable",
        "push-rejected", "runtime-file", "settings", "superseded", "target-red", "unknown-submodule-commit",
        "worktree-mismatch",
    }
)  # fmt: skip


def nearest(word: str, known: Iterable[str]) -> str | None:
    """The known word that was probably meant, for an error's hint."""
    import difflib  # takes 6 ms, which only a mistake has to pay

    close = difflib.get_close_matches(word, list(known), n=1, cutoff=0.6)
    return close[0] if close else None


def meant(word: str, known: Iterable[str], otherwise: str | None = None) -> str | None:
    """The reason of an error about an unknown word: the known one that was probably meant, or `otherwise`."""
    close = nearest(word, known)
    return f"Did you mean {close}?" if close else otherwise


def there_are(word: str, known: Sequence[str]) -> str:
    """The valid words to use instead of `word`, the one that was probably meant first."""
    return " ".join(filter(None, (meant(word, known), f"There are: {', '.join(known)}")))
