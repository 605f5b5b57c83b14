"""Finds out what a machine lacks before it is added, and installs `af` there, if asked to."""

from __future__ import annotations

import io
import re
import shlex
import tarfile
from collections.abc import Callable
from pathlib import Path

from msgspec import Struct

from agent_farm import __version__
from agent_farm.errors import AgentFarmError, NotFound, ToolMissing, UsageError
from agent_farm.launch import as_command
from agent_farm.printable import printable
from agent_farm.ssh.connection import ask
from agent_farm.ssh.ssh_url import Address

_SECONDS = 60.0
_INSTALL_SECONDS = 1800.0
_MOST_BYTES = 500_000_000
_PLACE = ".local/share/agent-farm"
_NAME = "codev-agent-farm"
_WHEEL = re.compile(r"[A-Za-z0-9_][A-Za-z0-9_.+!-]{0,200}\.whl")
# The PATH of a non-interactive shell, extended by where pip and the documentation put programs.
_PROBE = f"""
PATH="$PATH:$HOME/.local/bin:$HOME/{_PLACE}/venv/bin"
for tool in git tmux python3 af; do printf 'af-probe %s %s\\n' "$tool" "$(command -v "$tool")"; done
printf 'af-probe version %s\\n' "$(af --version 2>/dev/null </dev/null | sed -n 's/^af //p')"
"""
# $1 is what to install, the rest are options for pip; wheels arrive as a tar on standard input.
_INSTALL = f"""
echo af-begun
exec 2>&1
fail() {{ echo "af-failed $1"; exit 0; }}
python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || fail "Python 3.11 or newer is needed"
place="$HOME/{_PLACE}"
umask 077
mkdir -p "$place" && cd "$place" && rm -rf wheels && mkdir wheels || fail "$place cannot be written"
tar -xf - -C wheels || fail "the wheels did not arrive"
python3 -m venv venv || fail "no virtual environment could be made"
what=$1
shift
pip() {{ venv/bin/python -m pip --disable-pip-version-check "$@" </dev/null; }}
pip install --quiet "$@" "$what" || fail "pip failed"
rm -rf wheels
[ -x venv/bin/af ] || fail "the package contains no af"
echo "af-installed $place/venv/bin/af"
"""


class Wheels(Struct, frozen=True):
    """Files to send; `alone`: nothing else may be installed from anywhere."""

    files: tuple[Path, ...] = ()
    alone: bool = False


def probe(address: Address) -> dict[str, str]:
    """Where each tool is, or "", and the version of af; ToolMissing if a needed tool is absent."""
    lines = [line.decode("utf-8", "replace").split() for line in
             ask(address, ["sh", "-c", _PROBE], b"", seconds=_SECONDS)]  # fmt: skip
    found = {words[1]: words[2] if len(words) == 3 else "" for words in lines if words[:1] == ["af-probe"]}
    missing = [tool for tool in ("git", "tmux", "python3") if not found.get(tool)]
    if missing:
        install = as_command("sudo", "apt-get", "install", *missing)
        hint = as_command("ssh", "-t", *address.words, install)
        raise ToolMissing(f"{address.host} has no {', '.join(missing)}", hint=hint)
    return {"af": "", "version": "", **found}


def no_af(address: Address, asked: str) -> AgentFarmError:
    return ToolMissing(
        f"{address.host} has no af",
        why=f"--install puts af {__version__} into ~/{_PLACE}/venv there.",
        hint=as_command("af", "fleet", "add", "--install", asked),
    )


def other_af(address: Address, version: str, asked: str) -> AgentFarmError:
    return UsageError(
        f"{address.host} has af {printable(version)[:40]}, and this is {__version__}",
        why=f"Both must be the same. --install puts this one into ~/{_PLACE}/venv there.",
        hint=as_command("af", "fleet", "add", "--install", asked),
    )


def read_wheels(place: Path) -> Wheels:
    """A wheel of af, with its dependencies from an index; or a directory with everything."""
    files = sorted(place.glob("*.whl")) if place.is_dir() else [place]
    own = f"{_NAME.replace('-', '_')}-{__version__}-"
    if not all(_WHEEL.fullmatch(file.name) for file in files):
        raise UsageError(f"{place} is neither a wheel nor a directory of wheels", hint="af fleet add --help")
    if not any(file.name.startswith(own) and file.is_file() for file in files):
        how = as_command("pip", "wheel", "--wheel-dir", place, f"{_NAME}=={__version__}")
        raise NotFound(f"There is no wheel of af {__version__} in {place}", hint=how)
    if sum(file.stat().st_size for file in files) > _MOST_BYTES:
        raise UsageError(f"The wheels in {place} are larger than {_MOST_BYTES} bytes")
    return Wheels(tuple(files), place.is_dir())


def install(address: Address, wheels: Wheels, tell: Callable[[str], None]) -> str:
    """The installed program, in an environment of its own; any other af there is left alone."""
    what = f"{_NAME}=={__version__}"
    options = ["--find-links", "wheels"] if wheels.files else []
    options += ["--no-index"] if wheels.alone else []
    if wheels.files:
        tell(f"{address.host}: {len(wheels.files)} wheels are sent to ~/{_PLACE}/wheels")
    tell(f"{address.host}: python3 -m venv ~/{_PLACE}/venv")
    tell(f"{address.host}: ~/{_PLACE}/venv/bin/pip install {shlex.join([*options, what])}")
    words = ["sh", "-c", _INSTALL, "sh", what, *options]
    lines = [
        line.decode("utf-8", "replace").rstrip("\n")
        for line in ask(address, words, _archive(wheels), seconds=_INSTALL_SECONDS)
    ]
    ends = [line for line in lines if line.startswith(("af-installed ", "af-failed "))]
    last = ends[-1].partition(" ") if ends else ("", "", "")
    if last[0] == "af-installed":
        return last[2]
    said = [printable(line)[:300] for line in lines if not line.startswith("af-")]
    raise AgentFarmError(
        f"af could not be installed on {address.host}",
        why=printable(last[2])[:300] if last[0] == "af-failed" else None,
        evidence=said[-10:],
        hint=as_command("ssh", "-t", *address.words, "sudo apt-get install python3-venv")
        if "environment" in last[2]
        else None,
    )


def _archive(wheels: Wheels) -> bytes:
    kept = io.BytesIO()
    with tarfile.open(fileobj=kept, mode="w") as archive:
        for file in wheels.files:
            archive.add(file, arcname=file.name, recursive=False)
    return kept.getvalue()
