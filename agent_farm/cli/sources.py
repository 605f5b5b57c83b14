"""`af sources`."""

from __future__ import annotations

from collections.abc import Sequence

import click
from msgspec.structs import asdict

from agent_farm.cli.ask import complete_sources
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.operations.sources import AllSources, OneSource, RemovedSource, SourceShown


def _show_added(found: OneSource) -> None:
    one = found.source
    answer(f"{one.name}: {one.type} {printable(one.path)}")
    narrate_hint(f'af ask -s {one.name} "question"')


def _show_all(found: AllSources) -> None:
    if not found.sources:
        narrate("There are no sources yet.")
        narrate_hint("af sources add NAME PATH|URL")
    for line in _table(found.sources):
        answer(line)


def _table(rows: Sequence[SourceShown]) -> list[str]:
    name = max((len(row.name) for row in rows), default=0)
    kind = max((len(row.type) for row in rows), default=0)
    return [
        f"{row.name:<{name}}  {row.type:<{kind}}  {printable(row.url or row.path)}"
        + (f"  @{row.branch}" if row.branch else "")
        + (f"  @{row.commit[:12]}" if row.commit else "")
        + (f"  ({printable(row.problem)})" if row.problem else "")
        for row in rows
    ]


def _show_one(found: OneSource) -> None:
    for key, value in asdict(found.source).items():
        if value is not None:
            answer(f"{key + ':':<9}{printable(str(value))}")


def _show_removed(found: RemovedSource) -> None:
    answer(f"removed {found.removed}")
    if found.kept:
        narrate(f"Its clone holds changes of its own and is kept: {printable(found.kept)}")


def _show_updated(one: SourceShown) -> None:
    answer(f"updated {one.name}")


def _name() -> click.Argument:
    return click.Argument(["name"], shell_complete=complete_sources)


sources = click.Group(
    "sources",
    help="""The directories, files and git repositories that `af ask` may read.

    \b
      af sources add app ~/code/app
      af sources add notes ~/notes.md
      af sources add click https://github.com/pallets/click --branch main
    """,
    commands=[
        command_of(
            Way("sources_add", _show_added),
            name="add",
            params={
                "name": click.Argument(["name"]),
                "target": click.Argument(["target"], metavar="PATH|URL"),
            },
            metavars={"branch": "NAME", "commit": "ID"},
        ),
        command_of(Way("list_sources", _show_all), name="list"),
        command_of(Way("sources_show", _show_one), name="show", params={"name": _name()}),
        command_of(Way("sources_remove", _show_removed), name="remove", params={"name": _name()}),
        command_of(
            Way("sources_update", _show_updated),
            name="update",
            params={"names": click.Argument(["names"], nargs=-1, shell_complete=complete_sources)},
        ),
    ],
)
