"""`af send`."""

from __future__ import annotations

import sys
from typing import Any

import click

from agent_farm.cli.derived import Typed, Way, command_of
from agent_farm.cli.fields import offer, option_of
from agent_farm.cli.options import text_of
from agent_farm.cli.output import answer, narrate_hint, printable
from agent_farm.errors import UsageError
from agent_farm.operations.send import Delivered

EPILOG = """The last word is the text, or - for standard input.

\b
Examples:
  af send task-a7f3-x9k2 "Run the tests again"
  af send task-a7f3-x9k2 shell-1733250000-b4c1 "Stop after this step"
  git diff | af send task-a7f3-x9k2 -
  af send task-a7f3-x9k2 --keys "Down Enter"   answers a dialog
  af capture task-a7f3-x9k2                    shows it first

\b
Outcomes:
  submitted   the runtime has the message                         exit code 0
  held        nothing was typed: it shows a shell, dialog, draft  exit code 5
  failed      it was typed, and nothing confirms that it arrived  exit code 5
  pressed     the keys were pressed; the screen shows the effect  exit code 0
"""


def _show(one: Delivered) -> None:
    answer(printable(f"{one.id} {one.told}"))
    for hint in one.hints:
        narrate_hint(hint)


def _message(values: dict[str, Any]) -> dict[str, Any]:
    """The last word is the text, or - for standard input."""
    words: tuple[str, ...] = values["words"]
    if len(words) < 2:
        if sys.stdin.isatty():
            raise UsageError("No text to send", hint=f'af send {words[0]} "…"')
        words = (*words, "-")
    *ids, text = words
    if text == "-":
        text = text_of(sys.stdin.buffer.read(), "Standard input")
    return {"ids": tuple(ids), "text": text}


def _require_text(typed: Typed) -> None:
    """If the text was forgotten, the last id would be sent as the text."""
    text = typed.request.text
    if text != typed.values["words"][-1] or "-" not in text:
        return
    if any(id.startswith(text) for id in typed.context.farm.records()):
        raise UsageError(f"{text} is a builder, and no text to send is given", hint=f'af send … {text} "…"')


def _keys(values: dict[str, Any]) -> dict[str, Any]:
    return {"ids": values["words"]}


send = command_of(
    Way("send", _show, build=_message, before=_require_text),
    others={"keys": Way("send_keys", _show, build=_keys)},
    params={
        "ids": click.Argument(
            ["words"], metavar="ID... [TEXT|-]", nargs=-1, required=True, shell_complete=offer("complete_ids")
        ),
        "text": None,
    },
    also=[option_of("send_keys", "keys", "--keys", metavar="KEYS")],
    epilog=EPILOG,
)
