"""The demo agent's command line."""

from __future__ import annotations

import argparse
import json
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Arguments:
    mode: str = "interactive"
    home: Path | None = None
    prompt_file: Path | None = None
    role_file: Path | None = None
    mcp_config: Path | None = None
    hook: list[str] = field(default_factory=list)
    conversation: str | None = None
    resume: str | None = None
    permissions: str = "edit"
    model: str = "demo-1"
    read: list[Path] = field(default_factory=list)
    keep: list[Path] = field(default_factory=list)

    @property
    def role(self) -> str:
        return self.role_file.read_text(encoding="utf-8") if self.role_file else ""


def parse_arguments(words: list[str]) -> Arguments:
    """Ends the process with 2, and a line on stderr, when there is another word."""
    parser = argparse.ArgumentParser(prog="demo", add_help=False, allow_abbrev=False)
    parser.add_argument("mode", choices=("interactive", "headless"))
    for name in ("--home", "--prompt-file", "--role-file", "--mcp-config"):
        parser.add_argument(name, type=Path)
    for name in ("--read", "--keep"):
        parser.add_argument(name, type=Path, action="append")
    for name in ("--conversation", "--resume", "--model"):
        parser.add_argument(name)
    parser.add_argument("--hook", type=json.loads)
    parser.add_argument("--permissions", choices=("ask", "edit", "all"))
    return parser.parse_args(words, Arguments())
