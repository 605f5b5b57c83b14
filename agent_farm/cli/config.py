"""`af config`."""

from __future__ import annotations

from pathlib import Path

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.options import asker, current_farm, json_option, yes_option
from agent_farm.cli.output import answer, answer_json, narrate, narrate_hint, printable
from agent_farm.consent import HINT
from agent_farm.errors import AgentFarmError, ConsentNeeded
from agent_farm.launch import as_command


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.runtimes import ADAPTERS
    from agent_farm.settings import KEYS, RUNTIME_KEYS

    texts = {key.name: key.text for key in KEYS}
    if incomplete.startswith("runtimes."):
        texts |= {f"runtimes.{name}.{key.name}": key.text for name in ADAPTERS for key in RUNTIME_KEYS}
    return [CompletionItem(name, help=text) for name, text in texts.items() if name.startswith(incomplete)]


def complete_values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    from agent_farm.settings_keys import known_key

    key = known_key(str(ctx.params.get("name")))
    values = () if key is None else ("true", "false") if key.kind is bool else key.choices
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


_user = click.option("--user", is_flag=True, help="In your own file, for every repository.")


@click.group()
def config() -> None:
    """Show and change settings: those of the repository, and your own.

    agent-farm.toml lies in the repository and is everybody's; $XDG_CONFIG_HOME/agent-farm/config.toml
    (~/.config/agent-farm/config.toml) is yours, and holds where the repository says nothing.

    \b
      af config set --user spawn.runtime codex    your runtime, wherever nothing else is said
      af config set worktree.setup "npm ci"       for everybody who works here
      af config agree                             read what the repository wants, and agree to it
    """


@config.command("list")
@json_option
def list_settings(as_json: bool) -> None:
    """Print every setting with its value and the file it comes from."""
    from agent_farm.consent import not_agreed

    farm = current_farm(tolerant=True)
    settings = farm.settings
    waiting = [name for name in settings.values if not_agreed(farm.root, settings.requests([name]))]
    if as_json:
        rows = {
            name: {"value": value, "source": settings.source(name)} for name, value in settings.values.items()
        }
        answer_json({"settings": rows, "not_agreed": waiting})
        return
    width = max(len(name) for name in settings.values)
    for name, value in settings.values.items():
        source = printable(settings.source(name)) + (", not agreed to" if name in waiting else "")
        answer(f"{printable(name).ljust(width)}  {_shown(value)}  ({source})")
    if waiting:
        narrate_hint(HINT)


@config.command("get")
@click.argument("name", shell_complete=complete_keys)
def get_setting(name: str) -> None:
    """Print the value of one setting; nothing and exit code 1 when it has none."""
    from agent_farm.settings_file import find_key

    find_key(name)
    value = current_farm(tolerant=True).settings.values.get(name)
    if value is None or value == ():
        raise AgentFarmError(f"{name} is not set", hint=as_command("af", "config", "set", name, "VALUE"))
    answer(_shown(value))


@config.command("set", context_settings={"ignore_unknown_options": True})
@click.argument("name", shell_complete=complete_keys)
@click.argument("value", shell_complete=complete_values)
@_user
def set_setting(name: str, value: str, user: bool) -> None:
    """Store a setting; lists are comma-separated, and a value may begin with a dash.

    Without --user it goes into agent-farm.toml. What you type is agreed to by that.
    """
    from agent_farm.settings_file import set_value

    stored = set_value(_root(user), name, value)
    narrate(f"{name} = {_shown(stored)}")


@config.command("unset")
@click.argument("name", shell_complete=complete_keys)
@_user
def unset_setting(name: str, user: bool) -> None:
    """Take a setting out of its file."""
    from agent_farm.settings_file import unset_value

    narrate(f"{name} is unset" if unset_value(_root(user), name) else f"{name} was not set")


def _root(user: bool) -> Path | None:
    """A person's own settings are changed outside of a repository, too."""
    return None if user else current_farm(tolerant=True).root


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
    from agent_farm.farm.repository_requests import all_requests

    farm = current_farm(tolerant=True)
    new = not_agreed(farm.root, all_requests(farm))
    try:
        require_consent(farm.root, new, yes=yes, ask=asker())
    except ConsentNeeded as error:
        error.hint = f"{HINT} --yes"
        raise
    if as_json:
        answer_json({"agreed": [{"origin": one.origin, "content": one.content} for one in new]})
        return
    for request in new:
        answer(f"agreed: {request.shown}")
    if not new:
        narrate("Nothing is waiting for your consent.")
