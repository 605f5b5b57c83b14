"""Sizes of panes as they were before somebody looked at them on the page."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Attachment:
    """A viewer's client of a session: `before` is its window's size without it, the rest is its own."""

    socket: str | None
    session: str
    before: tuple[int, int] | None
    argv: tuple[str, ...]
    ignores_size: bool
    columns: int
    rows: int


@dataclass(slots=True)
class PaneSizes:
    """A glance from a phone leaves no pane at 52 columns: the last viewer that goes gives its size back."""

    _viewers: dict[tuple[str | None, str], int] = field(default_factory=dict)
    _before: dict[tuple[str | None, str], tuple[int, int] | None] = field(default_factory=dict)

    def enter(self, one: Attachment) -> None:
        key = (one.socket, one.session)
        self._viewers[key] = self._viewers.get(key, 0) + 1
        self._before.setdefault(key, one.before)

    def leave(self, one: Attachment) -> tuple[int, int] | None:
        """The size to be given back, once nobody looks any more."""
        key = (one.socket, one.session)
        self._viewers[key] -= 1
        if self._viewers[key]:
            return None
        del self._viewers[key]
        return self._before.pop(key)
