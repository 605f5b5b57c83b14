"""`af dash`."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_farm, json_option
from agent_farm.cli.output import answer, answer_json, narrate


@click.command()
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@json_option
def dash(no_browser: bool, as_json: bool) -> None:
    """Open the dashboard: all builders and sessions in the browser, live.

    It is served by the farm's server, on this machine alone. The address that is printed is good once,
    for two minutes; the browser stays logged in. From another machine, forward the port that it names:

    \b
      ssh -L 8123:localhost:8123 HOST
    """
    from agent_farm.dashboard.tickets import login_address

    address = login_address(current_farm().root)
    if as_json:
        answer_json({"address": address})
    else:
        answer(address)
    if no_browser or as_json:
        return
    import webbrowser

    if not webbrowser.open(address):
        narrate("No browser was found; open the address yourself.")
