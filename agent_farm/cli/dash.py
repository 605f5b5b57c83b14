"""`af dash`."""

from __future__ import annotations

import click

from agent_farm.cli.options import current_farm, json_option
from agent_farm.cli.output import answer, answer_json, narrate
from agent_farm.server.invitation import invite


@click.command()
@click.option("--no-browser", "--print", is_flag=True, help="Only print the address.")
@json_option
def dash(no_browser: bool, as_json: bool) -> None:
    """Open the dashboard: all builders and sessions in the browser, live.

    The farm's server serves it, on this machine only. The printed address works once, within two
    minutes; after that the browser stays logged in. The browser is given a file that only you can read
    instead of the address, because other users can see its command line. From another machine, forward
    the port in the address, then open the address there:

    \b
      ssh -L 8123:localhost:8123 HOST
    """
    invitation = invite(current_farm().root, with_page=not (no_browser or as_json))
    if as_json:
        answer_json({"address": invitation.address})
    else:
        answer(invitation.address)
    if invitation.page is None:
        return
    import webbrowser

    if webbrowser.open(invitation.page):
        narrate("If the browser shows no dashboard, open the address above in it.")
    else:
        narrate("No browser was found; open the address yourself.")
