"""`af pr`."""

from __future__ import annotations

import click

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.operations.pr import AllAsked, PullRequestMade

_DID = {"opened": "opened", "updated": "updated", "none": "is there already", "looked": ""}


def _show(part: PullRequestMade) -> None:
    one = part.pull_request
    did = f", {_DID[part.did]}" if _DID[part.did] else ""
    answer(printable(f"{part.id}  {one.told}{did}  {one.url}".rstrip()))
    for path in part.left_behind:
        narrate(f"  not committed, so not in it: {printable(path)}")


def _conclude(found: AllAsked) -> None:
    if not found.pull_requests and not found.failed:
        narrate("No builder has a pull request.")
        narrate_hint("af pr ID")


pr = command_of(
    Way("pr", _show, _conclude),
    others={"refresh": Way("pr_refresh", _show, _conclude)},
    params={"ids": click.Argument(["ids"], metavar="[ID]...", nargs=-1)},
    also=[
        click.Option(
            ["--refresh"], is_flag=True, help="Ask the forge what became of them; without ids, of all."
        ),
    ],
    epilog="""\b
af status shows the state of the last look. Merged there counts as landed
here, also squashed, if the builder has committed nothing since.
""",
)
