"""BuilderConfig: what any kind of spawn request is turned into."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct

BuilderType = Literal["spec", "task", "protocol", "shell"]
BUILDER_TYPES: tuple[BuilderType, ...] = ("spec", "task", "protocol", "shell")


class BuilderConfig(Struct, frozen=True):
    """`role` is the file the system prompt is read from; `prompt` is None for a shell."""

    type: BuilderType
    id: str
    branch: str
    worktree: Path
    prompt: str | None
    role: Path | None
    context_files: tuple[str, ...] = ()
    protocol_args: Mapping[str, Any] | None = None
    runtime: str = ""
    model: str | None = None
    base: str = ""
    sparse: tuple[str, ...] = ()
