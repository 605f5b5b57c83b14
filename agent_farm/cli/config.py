"""`af config`."""

from __future__ import annotations

import click
from click.shell_completion import CompletionItem

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.family import Family
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.consent import HINT
from agent_farm.operations.config import Agreed, AllSettings, TakenOut
from agent_farm.runtimes import ADAPTERS
from agent_farm.settings_keys import KEYS, RUNTIME_KEYS, known_key


def complete_keys(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    texts = {key.name: key.text for key in KEYS}
    if incomplete.startswith("runtimes."):
        texts |= {f"runtimes.{name}.{key.name}": key.text for name in ADAPTERS for key in RUNTIME_KEYS}
    return [CompletionItem(name, help=text) for name, text in texts.items() if name.startswith(incomplete)]


def complete_values(ctx: click.Context, param: click.Parameter, incomplete: str) -> list[CompletionItem]:
    key = known_key(str(ctx.params.get("name")))
    values = () if key is None else ("true", "false") if key.kind is bool else key.choices
    return [CompletionItem(value) for value in values if value.startswith(incomplete)]


def _shown(value: object) -> str:
    """The value on one line, whatever a repository has put into it."""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, (tuple, list)):
        value = ",".join(value) if value else "(none)"
    return "(none)" if value is None else printable(str(value)).replace("\n", "\\n")


def _show_all(found: AllSettings) -> None:
    width = max(len(name) for name in found.settings)
    for name, one in found.settings.items():
        source = printable(one.source) + (", not agreed to" if name in found.not_agreed else "")
        answer(f"{printable(name).ljust(width)}  {_shown(one.value)}  ({source})")
    if found.not_agreed:
        narrate_hint(HINT)


def _show_taken_out(found: TakenOut) -> None:
    narrate(f"{printable(found.name)} {'is unset' if found.was_set else 'was not set'}")


def _show_agreed(found: Agreed) -> None:
    for one in found.agreed:
        answer(f"agreed: {one.shown}")
    if not found.agreed:
        narrate("Nothing is waiting for your consent.")


_NAMED = {"name": complete_keys}
config = Family(
    "config",
    help="""Show and change settings: those of the repository, and your own.

    agent-farm.toml is in the repository and applies to everybody; ~/.config/agent-farm/config.toml
    (or in $XDG_CONFIG_HOME) is yours, and applies where the repository sets nothing.

    \b
      af config set --user spawn.runtime codex   for you, where it is not set
      af config set worktree.setup "npm ci"      for everybody who works here
      af config agree                            read what needs your approval
    """,
    commands=[
        command_of(Way("config_list", _show_all), name="list"),
        command_of(
            Way("config_get", lambda found: answer(_shown(found.value))),
            name="get",
            complete=_NAMED,
        ),
        command_of(
            Way("config_set", lambda found: narrate(f"{found.name} = {_shown(found.value)}")),
            name="set",
            complete={**_NAMED, "value": complete_values},
            params={"yes": None},  # a person who types a value agrees to it
            context_settings={"ignore_unknown_options": True},
            epilog="A value may begin with a dash. Typing it counts as approving it.",
        ),
        command_of(Way("config_unset", _show_taken_out), name="unset", complete=_NAMED),
        command_of(Way("config_agree", _show_agreed), name="agree"),
    ],
)
