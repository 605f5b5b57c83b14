"""Sessions on other machines: the interface to what runs them there, and the choice of the machine."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent_farm.consent import Consent
from agent_farm.errors import UsageError
from agent_farm.sessions.session import Observer, Session, SessionRequest
from agent_farm.settings import Settings

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class SessionOrder:
    """What goes with a session besides its record. `keys` are only for this session; `agreed` is the answer
    of a person who was asked; `butler` is None for the farm's own."""

    butler: str | None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    agreed: Consent = False
    timeout: float | None = None


class Elsewhere(Protocol):
    """Belongs to one event loop. A returned session has ended, or continues as this process ends."""

    async def run(self, session: Session, order: SessionOrder, observer: Observer) -> Session:
        """Begin it once, on one machine; if cancelled, it is ended there. Raises if it has not begun."""
        ...

    async def go_on(self, session: Session, observer: Observer) -> Session:
        """`run` for a session that was begun earlier."""
        ...

    async def hold_again(self, sessions: list[Session]) -> None:
        """Hold the slots of exactly these sessions, which an earlier server began."""
        ...

    def recorded(self, session: Session) -> None:
        """The session's end is recorded here, so its machine need not keep it any more."""
        ...

    def leave(self) -> None:
        """This process ends; sessions that have begun continue without it."""
        ...


NewElsewhere = Callable[[], Elsewhere]


def place_of(request: SessionRequest, settings: Settings) -> str | None:
    """The machine that should run it, `fleet` for any, None for this one. What a session triggers, what names
    a directory on this machine, and what continues a conversation stays where that is."""
    asked = request.host
    if asked is None and not (request.parent or request.cwd or request.resumes or request.for_home):
        asked = settings.text("sessions.on")
    if asked in (None, LOCAL):
        return None
    if request.cwd:
        raise UsageError(
            "--cwd cannot be combined with --on",
            why="Another machine does not have that directory.",
            hint="af run --on local …",
        )
    return asked
