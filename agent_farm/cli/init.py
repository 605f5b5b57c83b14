"""`af init`."""

from __future__ import annotations

import os
import shlex
from pathlib import Path
from typing import TYPE_CHECKING

import click

from agent_farm.cli.options import current_directory, json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable

if TYPE_CHECKING:
    from agent_farm.farm.init import InitReport


@click.command()
@json_option
def init(as_json: bool) -> None:
    """Write codev/ and agent-farm.toml: roles, protocols, templates and settings to start from.

    Files that exist are kept as they are. Nothing is committed.
    """
    from agent_farm.farm.init import init_farm

    report = init_farm(current_directory())
    if as_json:
        from dataclasses import asdict

        answer_json({"init": asdict(report)})
        return
    _show_files(report)
    _show_ignore_lines(report)
    if report.created:
        narrate_hint(_commit(report))


def _show_files(report: InitReport) -> None:
    if not report.created:
        answer(f"Nothing to do: all {len(report.kept)} files are there.")
        return
    for name in report.created:
        answer(f"created {name}")
    if report.kept:
        narrate(f"Kept {len(report.kept)} files that were there.")


def _show_ignore_lines(report: InitReport) -> None:
    if not report.ignore_lines:
        return
    narrate("Tools of this repository that would walk into builders' files, and the line that stops each:")
    tools: dict[tuple[str, str], list[str]] = {}
    for item in report.ignore_lines:
        tools.setdefault((item.file, item.line), []).append(item.tool)
    for (file, line), names in tools.items():
        narrate(f"  {printable(file)}: {line}  ({', '.join(names)})")


def _commit(report: InitReport) -> str:
    from agent_farm.farm.init import COMMIT

    here = os.path.realpath(Path.cwd()) == os.path.realpath(report.root)
    return COMMIT if here else f"cd {shlex.quote(str(report.root))} && {COMMIT}"
