"""`af config`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.options import asker, current_farm, json_option, yes_option
from agent_farm.cli.output import answer, answer_json, narrate, printable
from agent_farm.errors import AgentFarmError


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.settings import KEYS

    return [CompletionItem(key.name, help=key.text) for key in KEYS if key.name.startswith(incomplete)]


@click.group()
def config() -> None:
    """Show and change the farm's settings in agent-farm.toml."""


@config.command("list")
@json_option
def list_settings(as_json: bool) -> None:
    """Print every setting with its value and where it comes from."""
    from agent_farm.paths import SETTINGS_NAME
    from agent_farm.settings import KEYS, RUNTIME_KEYS

    settings = current_farm(tolerant=True).settings
    rows = [(key.name, settings.values[key.name], settings.source(key.name)) for key in KEYS]
    for name, runtime in settings.runtimes.items():
        rows += [
            (f"runtimes.{name}.{key.name}", value, SETTINGS_NAME)
            for key in RUNTIME_KEYS
            if (value := getattr(runtime, key.name))
        ]
    if as_json:
        answer_json({"settings": {name: {"value": value, "source": source} for name, value, source in rows}})
        return
    width = max(len(row[0]) for row in rows)
    for name, value, source in rows:
        answer(f"{printable(name).ljust(width)}  {_shown(value)}  ({printable(source)})")


@config.command("get")
@click.argument("name", shell_complete=complete_keys)
def get_setting(name: str) -> None:
    """Print the value of one setting; nothing and exit code 1 when it has none."""
    from agent_farm.settings_file import find_key

    settings = current_farm(tolerant=True).settings
    key = find_key(name)
    value = (
        settings.values[name]
        if name in settings.values
        else getattr(settings.runtime(name.split(".")[1]), key.name)
    )
    if value is None:
        raise AgentFarmError(f"{name} is not set", why=f"Its default: {key.text}.")
    answer(_shown(value))


@config.command("set")
@click.argument("name", shell_complete=complete_keys)
@click.argument("value")
def set_setting(name: str, value: str) -> None:
    """Store a setting in agent-farm.toml; lists are comma-separated."""
    from agent_farm.settings_file import set_value

    stored = set_value(current_farm(tolerant=True).root, name, value)
    narrate(f"{name} = {_shown(stored)}")


@config.command("unset")
@click.argument("name", shell_complete=complete_keys)
def unset_setting(name: str) -> None:
    """Return a setting to its default."""
    from agent_farm.settings_file import unset_value

    narrate(
        f"{name} is unset" if unset_value(current_farm(tolerant=True).root, name) else f"{name} was not set"
    )


def _shown(value: object) -> str:
    """On one line, whatever a repository has put into it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        value = ",".join(value) if value else "(none)"
    return "(none)" if value is None else printable(str(value)).replace("\n", "\\n")


@config.command("agree")
@yes_option
@json_option
def agree_to_all(yes: bool, as_json: bool) -> None:
    """Show what this repository wants that nobody has agreed to yet, and ask about it.

    Commands, arguments, permissions, variables, copies, schedules and scripts of a repository take effect
    once its user has agreed to them; what is changed afterwards is asked about again.
    """
    from agent_farm.consent import not_agreed, require_consent
    from agent_farm.farm.wishes import all_requests

    farm = current_farm(tolerant=True)
    new = not_agreed(farm.root, all_requests(farm))
    require_consent(farm.root, new, yes=yes, ask=asker())
    if as_json:
        answer_json({"agreed": [{"origin": one.origin, "content": one.content} for one in new]})
        return
    for request in new:
        answer(f"agreed: {request.shown}")
    if not new:
        narrate("There is nothing that waits for your consent.")
