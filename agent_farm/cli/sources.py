"""`af sources`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

import click

from agent_farm.cli.ask import complete_sources
from agent_farm.cli.options import json_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable

if TYPE_CHECKING:
    from agent_farm.ask.targets import Kind

_name = click.argument("name", shell_complete=complete_sources)


@click.group()
def sources() -> None:
    """The directories, files and git repositories that `af ask` may read.

    \b
      af sources add app ~/code/app
      af sources add notes ~/notes.md
      af sources add click https://github.com/pallets/click --branch main
    """


@sources.command()
@click.argument("name")
@click.argument("target", metavar="PATH|URL")
@click.option("--kind", type=click.Choice(["git", "directory", "file"]), help="What it is, if not plain.")
@click.option("--branch", metavar="NAME", help="Follow this branch or tag (git).")
@click.option("--commit", metavar="ID", help="Stay at this commit (git).")
@json_option
def add(
    name: str, target: str, kind: str | None, branch: str | None, commit: str | None, as_json: bool
) -> None:
    """Add a source. A git repository is cloned; a directory or file is read where it lies."""
    from agent_farm.ask import uses

    chosen = cast("Kind | None", kind)
    facts = uses.add_source(name, target, kind=chosen, branch=branch, commit=commit, narrate=_narrate)
    if as_json:
        answer_json({"source": facts})
        return
    answer(f"{facts['name']}: {facts['type']} {printable(facts['path'])}")
    narrate_hint(f'af ask -s {facts["name"]} "question"')


@sources.command(name="list")
@json_option
def list_command(as_json: bool) -> None:
    """List all sources, and what is wrong with them."""
    from agent_farm.ask import uses

    found = uses.list_sources()
    if as_json:
        answer_json({"sources": found})
        return
    if not found:
        narrate("There are no sources yet.")
        narrate_hint("af sources add NAME PATH|URL")
    for line in _table(found):
        answer(line)


@sources.command()
@_name
@json_option
def show(name: str, as_json: bool) -> None:
    """Show one source."""
    from agent_farm.ask import uses

    facts = uses.show_source(name)
    if as_json:
        answer_json({"source": facts})
        return
    for key, value in facts.items():
        if value is not None:
            answer(f"{key + ':':<9}{printable(str(value))}")


@sources.command()
@_name
@json_option
def remove(name: str, as_json: bool) -> None:
    """Forget a source. Your own files stay; a clone goes, unless somebody worked in it."""
    from agent_farm.ask import uses

    kept = uses.remove_source(name)
    if as_json:
        answer_json({"removed": name, "kept": str(kept) if kept else None})
        return
    answer(f"removed {name}")
    if kept:
        narrate(f"Its clone holds changes of its own and is kept: {printable(str(kept))}")


@sources.command()
@click.argument("names", nargs=-1, shell_complete=complete_sources)
@json_option
def update(names: tuple[str, ...], as_json: bool) -> None:
    """Bring git sources to what their remotes have now; without names, all of them."""
    from agent_farm.ask import uses

    updated, failures = uses.update_sources(names, narrate=_narrate)
    if not as_json:
        for facts in updated:
            answer(f"updated {facts['name']}")
    for failure in failures[1:]:
        narrate(printable(failure.what))
    if failures:
        raise failures[0]
    if as_json:
        answer_json({"sources": updated})


def _narrate(text: str) -> None:
    narrate(printable(text))


def _table(rows: list[dict[str, Any]]) -> list[str]:
    name, kind = (max((len(row[key]) for row in rows), default=0) for key in ("name", "type"))
    return [
        f"{row['name']:<{name}}  {row['type']:<{kind}}  {printable(str(row.get('url', row['path'])))}"
        + (f"  @{row['branch']}" if "branch" in row else "")
        + (f"  @{row['commit'][:12]}" if "commit" in row else "")
        + (f"  ({printable(row['problem'])})" if row["problem"] else "")
        for row in rows
    ]
