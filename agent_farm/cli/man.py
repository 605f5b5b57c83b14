"""`af man`: manual pages, made from what `--help` says."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import click

from agent_farm.cli.output import answer, narrate_hint
from agent_farm.disk import cannot_write, make_directory, replace_file
from agent_farm.launch import as_command

# Lines that are already as wide as a terminal are not indented.
_AS_IT_IS = ".nf\n.in 0"
_HEADING = re.compile(r"(?m)^(\S[^\n]*):$")


@click.command("man")
@click.argument("directory", type=click.Path(file_okay=False, path_type=Path))
def man(directory: Path) -> None:
    """Write manual pages of af and of each command below DIRECTORY, in man1.

    \b
      af man ~/.local/share/man && man af-spawn
    """
    from agent_farm.cli.main import cli

    place = directory / "man1"
    try:
        make_directory(place, mode=0o755)
        for name, text in pages(cli):
            replace_file(place / f"{name}.1", text, mode=0o644)
    except OSError as error:
        raise cannot_write(place, error) from error
    answer(str(place))
    narrate_hint(as_command("man", "-M", str(directory), "af"))


def pages(command: click.Command, path: str = "af") -> Iterator[tuple[str, str]]:
    """One page for the command and one for each command below it."""
    context = click.Context(command, info_name=path.replace("-", " "), max_content_width=78)
    yield path, _page(path, command, context)
    if isinstance(command, click.Group):
        for name in command.list_commands(context):
            below = command.get_command(context, name)
            if below is not None and not below.hidden:
                yield from pages(below, f"{path}-{name}")


def _page(path: str, command: click.Command, context: click.Context) -> str:
    usage, _, body = command.get_help(context).partition("\n\n")
    short = (command.get_short_help_str(200) or "builders in worktrees of their own").rstrip(".")
    return "\n".join(
        [
            f'.TH "{path.upper()}" "1" "" "agent-farm" "User Commands"',
            ".SH NAME",
            f"{path} \\- {_roff(short)}",
            ".SH SYNOPSIS",
            _roff(usage.removeprefix("Usage: ")),
            ".SH DESCRIPTION",
            _AS_IT_IS,
            _HEADING.sub(lambda found: f".fi\n.SH {found[1].upper()}\n{_AS_IT_IS}", _roff(body)),
            ".fi",
            "",
        ]
    )


def _roff(text: str) -> str:
    """The text as it is, whatever characters it begins with."""
    plain = text.replace("\\", "\\e").replace("-", "\\-")
    ascii_only = re.sub(r"[^\x00-\x7f]", lambda found: f"\\[u{ord(found[0]):04X}]", plain)
    return re.sub(r"(?m)^([.'])", r"\\&\1", ascii_only)
