"""An interpreter of its own for what is started in one place, and another program instead of some of it."""

from __future__ import annotations

import os
import shlex
import sys
from dataclasses import dataclass
from pathlib import Path

_CHECKOUT = Path(__file__).parents[1]


@dataclass(frozen=True)
class OwnPython:
    """As a virtual environment: `sys.executable` of what it starts is `path`, so that what this starts is
    seen here, too."""

    path: Path

    @classmethod
    def at(cls, directory: Path) -> OwnPython:
        ours = Path(sys.prefix)
        (directory / "bin").mkdir(parents=True)
        (directory / "lib").symlink_to(ours / "lib")
        (directory / "pyvenv.cfg").write_bytes((ours / "pyvenv.cfg").read_bytes())
        (directory / "bin/real").symlink_to(os.path.realpath(sys.executable))
        made = cls(directory / "bin/python")
        made.is_sound()
        return made

    def runs(self, words: str, *argv: str | Path) -> None:
        """Whatever is started with `words` is this program from now on."""
        environment = f"PYTHONPATH={_CHECKOUT} PYTHONDONTWRITEBYTECODE=1"
        instead = shlex.join(map(str, argv))
        self._store(f'case "$*" in *{shlex.quote(words)}*) exec env {environment} {instead} "$@";; esac\n')

    def is_sound(self) -> None:
        self._store("")

    def _store(self, instead: str) -> None:
        real = shlex.quote(str(self.path.with_name("real")))
        new = self.path.with_name("new")
        new.write_text(f'#!/bin/bash\n{instead}exec -a "$0" {real} "$@"\n')
        new.chmod(0o755)
        new.replace(self.path)  # whoever starts just now gets one of the two
