"""The parts of a protocol's `protocol.json` that `af` uses, in codev's own format."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated

from msgspec import DecodeError, Meta, Struct, json

from agent_farm.errors import UsageError

# A phase is shown in status and named in the prompt: one word of bounded length.
_Phase = Annotated[str, Meta(pattern=r"\A[A-Za-z0-9_][A-Za-z0-9_.-]{0,39}\Z")]
_MOST_PHASES = 30


class Input(Struct, frozen=True):
    type: str = "none"
    required: bool = False


class _Check(Struct, frozen=True):
    command: str | None = None
    optional: bool = False


class Phase(Struct, frozen=True):
    id: _Phase
    checks: dict[str, str | _Check] = {}


class _Defaults(Struct, frozen=True):
    checks: dict[str, str] = {}


class ProtocolFile(Struct, frozen=True):
    alias: str | None = None
    input: Input | None = None
    phases: Annotated[tuple[Phase, ...], Meta(max_length=_MOST_PHASES)] = ()
    defaults: _Defaults | None = None

    @property
    def phase_names(self) -> tuple[str, ...]:
        return tuple(phase.id for phase in self.phases)

    def checks(self) -> Iterator[tuple[str, str]]:
        """Commands that any work can be checked with, not those about one project or pull request."""
        if self.defaults:
            yield from self.defaults.checks.items()
        for phase in self.phases:
            for name, check in phase.checks.items():
                one = _Check(check) if isinstance(check, str) else check
                if one.command and not one.optional and "${" not in one.command and "gh " not in one.command:
                    yield name, one.command


def parse_protocol_file(text: bytes | str, where: str) -> ProtocolFile:
    try:
        return json.decode(text, type=ProtocolFile)
    except (DecodeError, RecursionError) as error:
        raise UsageError(f"{where} cannot be read", why=str(error)) from None
