"""`af init`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.operations.init import Written


def _show(found: Written) -> None:
    _show_files(found)
    _show_ignore_lines(found)
    if found.hint:
        narrate_hint(found.hint)


def _show_files(found: Written) -> None:
    if not found.created:
        answer(f"Nothing to do: all {len(found.kept)} files are there.")
        return
    for name in found.created:
        answer(f"created {name}")
    if found.kept:
        narrate(f"Kept {len(found.kept)} files that were there.")


def _show_ignore_lines(found: Written) -> None:
    if not found.ignore_lines:
        return
    narrate("Tools of this repository that would walk into builders' files, and the line that stops each:")
    tools: dict[tuple[str, str], list[str]] = {}
    for item in found.ignore_lines:
        tools.setdefault((item.file, item.line), []).append(item.tool)
    for (file, line), names in tools.items():
        narrate(f"  {printable(file)}: {line}  ({', '.join(names)})")


init = command_of(Way("init", _show))
