"""Which signals the launcher handles, and which are meant for the program in the foreground."""

from __future__ import annotations

from agent_farm.lean import signal

TYPE_CHECKING = False
if TYPE_CHECKING:
    from types import FrameType, TracebackType

_ENDINGS = (signal.SIGHUP, signal.SIGTERM)
# Signals that a terminal sends to its foreground, or that changing the foreground causes.
_NOT_FOR_US = (
    signal.SIGINT, signal.SIGQUIT, signal.SIGTSTP, signal.SIGTTOU, signal.SIGTTIN, signal.SIGPIPE,
)  # fmt: skip
_OTHERS = (signal.SIGCHLD, signal.SIGUSR1, signal.SIGUSR2, signal.SIGXFSZ)


class HungUp(BaseException):
    """tmux is dying, or the pane is being ended: nothing is recorded, since nothing ended by itself."""

    def __init__(self, number: int) -> None:
        self.number = number


def take_signals() -> None:
    def hang_up(number: int, frame: FrameType | None) -> None:
        ignore_signals()  # a second signal would interrupt what the first has begun
        raise HungUp(number)

    for number in _ENDINGS:
        signal.signal(number, hang_up)
    for number in _NOT_FOR_US:
        signal.signal(number, signal.SIG_IGN)


class SignalsHeld:
    """Delays signals until the block ends."""

    def __enter__(self) -> None:
        self._before = signal.pthread_sigmask(signal.SIG_BLOCK, _ENDINGS)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        signal.pthread_sigmask(signal.SIG_SETMASK, self._before)


def ignore_signals() -> None:
    for number in (*_ENDINGS, *_NOT_FOR_US):
        signal.signal(number, signal.SIG_IGN)


def default_signals() -> None:
    """Resets signals to what a program expects: ignored ones would stay ignored in its children."""
    for number in (*_ENDINGS, *_NOT_FOR_US, *_OTHERS):
        signal.signal(number, signal.SIG_DFL)
