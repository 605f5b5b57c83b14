"""Sessions that another machine runs: what the records' keeper asks of whoever reaches machines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Protocol

from agent_farm.errors import UsageError
from agent_farm.sessions.session import Observer, Session, SessionRequest
from agent_farm.settings import Settings

LOCAL = "local"


@dataclass(frozen=True, slots=True)
class Order:
    """What goes along with a session beside its record. `keys` are for it alone; `agreed` is what a person
    said who was asked; `butler` is None for the farm's own."""

    butler: str | None
    keys: Mapping[str, str] = field(default_factory=dict, repr=False)
    agreed: bool = False
    timeout: float | None = None


class Elsewhere(Protocol):
    """Belongs to one event loop. What comes back has ended, or still runs there because this process ends."""

    async def run(self, session: Session, order: Order, observer: Observer) -> Session:
        """Begun once, on one machine; cancelled it is ended there. An error where it has not begun."""
        ...

    async def go_on(self, session: Session, observer: Observer) -> Session:
        """The same for one that was begun earlier."""
        ...

    async def hold_again(self, sessions: list[Session]) -> None:
        """Their slots, and no others: those that a server which is gone had begun."""
        ...

    def recorded(self, session: Session) -> None:
        """Its end is on record here: its machine need not keep it any more."""
        ...

    def leave(self) -> None:
        """This process ends: sessions that have begun go on without it."""
        ...


NewElsewhere = Callable[[], Elsewhere]


def place_of(request: SessionRequest, settings: Settings) -> str | None:
    """The machine that is to run it, `fleet` for any; None: this one. What a session triggers, what has a
    directory of this machine and what continues a conversation stays where that is."""
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
