"""`af dash`."""

from __future__ import annotations

from pathlib import Path

import click

from agent_farm.cli.options import current_farm, json_option
from agent_farm.cli.output import answer, answer_json, narrate, printable
from agent_farm.errors import AgentFarmError, in_one_line
from agent_farm.server.invitation import invite


@click.command(
    params=[
        click.Option(["--no-browser", "--print"], is_flag=True, help="Only print the address."),
        click.Option(["--all", "all_farms"], is_flag=True, help="Show all your farms on one page."),
        json_option(),
    ]
)
def dash(no_browser: bool, all_farms: bool, as_json: bool) -> None:
    """Open the dashboard: all builders and sessions in the browser, live.

    The farm's server serves it, on this machine only. The printed address works once, within two
    minutes; after that the browser stays logged in. The browser is given a file that only you can read
    instead of the address, because other users can see its command line. From another machine, forward
    the port in the address, then open the address there:

    \b
      ssh -L 8123:localhost:8123 HOST

    With --all the page lists the builders of every farm that has some. Each farm's server runs then, and
    an address that logs the browser in to it is printed.
    """
    here = current_farm().root
    view = "farms" if all_farms else ""
    invitation = invite(here, with_page=not (no_browser or as_json), view=view)
    others = _others(here) if all_farms else {}
    if as_json:
        answer_json({"address": invitation.address, **({"farms": others} if all_farms else {})})
    else:
        answer(invitation.address)
        for root, address in others.items():
            answer(printable(f"{address}  {root}"))
    if invitation.page is None:
        return
    import webbrowser

    if webbrowser.open(invitation.page):
        narrate("If the browser does not show the dashboard, open the address above in it.")
    else:
        narrate("No browser was found; open the address yourself.")


def _others(here: Path) -> dict[str, str]:
    from agent_farm.operations.farms import known_farms

    found = {}
    for root in known_farms(here):
        if root == here:
            continue
        try:
            found[str(root)] = invite(root, with_page=False).address
        except (AgentFarmError, OSError) as error:
            narrate(printable(f"{root} is left out: {in_one_line(error)}"))
    return found
