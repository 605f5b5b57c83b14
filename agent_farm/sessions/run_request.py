"""RunRequest: all that a caller may say about one session, as a value and as JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agent_farm.sessions.trigger_sources import is_callers_source

if TYPE_CHECKING:
    from agent_farm.sessions.order import RunOptions

_TEXTS = ("context", "runtime", "model", "permissions", "parent", "resume")
_PLACES = ("cwd", "checkout")


@dataclass(frozen=True, slots=True)
class RunRequest:
    """`attached`: the session is cancelled when this caller goes away.

    `parent` is the session that asks, `traceparent` the trace that it asks in (W3C). `checkout` is what it is
    asked about, `resume` the session whose conversation goes on.
    """

    prompt: str
    context: str | None = None
    max_turns: int = 20
    runtime: str | None = None
    model: str | None = None
    permissions: str | None = None
    cwd: Path | None = None
    timeout: float | None = None
    attached: bool = False
    source: str = "external"
    parent: str | None = None
    traceparent: str | None = None
    checkout: Path | None = None
    resume: str | None = None

    def to_json(self) -> dict[str, Any]:
        """The trace is left out: it travels as a header, as everywhere."""
        fields = asdict(self)
        del fields["traceparent"]
        return {name: str(value) if isinstance(value, Path) else value for name, value in fields.items()}

    @classmethod
    def from_json(cls, body: object) -> RunRequest:
        """ValueError, KeyError or TypeError for what is no request."""
        if not isinstance(body, Mapping):
            raise ValueError("it has to be an object")
        for name in (*_TEXTS, *_PLACES):
            if not isinstance(value := body.get(name), str | None) or "\0" in (value or ""):
                raise ValueError(f"{name} has to be a text without NUL")
        source, timeout = body.get("source", "external"), body.get("timeout")
        if not is_callers_source(source):
            raise ValueError(f"{source!r} is not a source that a caller may name")
        return cls(
            prompt=str(body["prompt"]),
            max_turns=int(body.get("max_turns", 20)),
            timeout=float(timeout) if timeout else None,
            attached=bool(body.get("attached", False)),
            source=source,
            cwd=_place(body.get("cwd")),
            checkout=_place(body.get("checkout")),
            **{name: body.get(name) or None for name in _TEXTS},
        )

    def options(self) -> RunOptions:
        from agent_farm.sessions.order import RunOptions

        return RunOptions(
            model=self.model,
            cwd=self.cwd,
            timeout=self.timeout,
            parent=self.parent,
            checkout=self.checkout,
        )


def _place(value: str | None) -> Path | None:
    return Path(value) if value else None
