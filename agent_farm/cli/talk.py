"""`af send`, `af wait`."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import click

from agent_farm.builders.ids import match_builder
from agent_farm.cli.options import complete_ids, current_farm, ids_argument, json_option, text_of
from agent_farm.cli.output import answer, answer_json, narrate_hint, printable
from agent_farm.errors import NotDelivered, UsageError

if TYPE_CHECKING:
    from agent_farm.tmux.delivery import Delivery


@click.command(
    epilog="""\b
Examples:
  af send task-a7f3-x9k2 "Run the tests again"
  af send task-a7f3-x9k2 shell-1733250000-b4c1 "Stop after this step"
  git diff | af send task-a7f3-x9k2 -
  af send task-a7f3-x9k2 --keys "Down Enter"     answer a dialog; look first: af capture ID

\b
Outcomes:
  submitted   the runtime has the message                                exit code 0
  held        nothing was typed: a shell, a dialog or a draft is shown   exit code 5
  failed      it was typed, but nothing confirms that it was submitted   exit code 5
  pressed     the keys were pressed; what they did, the screen shows     exit code 0

\b
Keys: Enter Escape Tab Up Down Left Right Space BSpace C-c, or one character.
"""
)
@click.argument("words", metavar="ID... [TEXT|-]", nargs=-1, required=True, shell_complete=complete_ids)
@click.option("--keys", metavar="KEYS", help="Press these keys instead, separated by spaces.")
@json_option
def send(words: tuple[str, ...], keys: str | None, as_json: bool) -> int:
    """Send a message to running builders; the last word is the text, or - for standard input."""
    from agent_farm.farm.send import press_all, send_all
    from agent_farm.tmux.keys import parse_keys

    pressed = parse_keys(keys) if keys is not None else None
    ids, text = (words, "") if pressed else _ids_and_text(words)
    farm = current_farm(tolerant=True)
    records = farm.records()
    if not pressed and words[-1] == text:
        _require_text(text, list(records))
    chosen = [records[match_builder(id, list(records))] for id in dict.fromkeys(ids)]
    results: dict[str, Delivery] = {}
    try:
        for id, result in press_all(farm, chosen, pressed) if pressed else send_all(farm, chosen, text):
            results[id] = result
            if not as_json:
                _show(id, result)
    finally:  # what became of some is not lost when the others are interrupted
        if as_json and results:  # else the error is the answer
            told = [_as_json(record.id, results[record.id]) for record in chosen if record.id in results]
            answer_json({"deliveries": told})
    good = all(result.outcome in ("submitted", "pressed") for result in results.values())
    return 0 if good else NotDelivered.exit_code


def _show(id: str, result: Delivery) -> None:
    answer(f"{id} {result.outcome}" + (f": {printable(result.reason)}" if result.reason else ""))
    for hint in result.hints:
        narrate_hint(hint)


def _require_text(text: str, known: Sequence[str]) -> None:
    """Where the text was forgotten, the last id would be sent."""
    if "-" in text and any(id.startswith(text) for id in known):
        raise UsageError(
            f"{text} is a builder, and there is no text to send",
            hint=f'af send … {text} "…"',
        )


def _ids_and_text(words: tuple[str, ...]) -> tuple[tuple[str, ...], str]:
    if len(words) < 2:
        if sys.stdin.isatty():
            raise UsageError("No text to send", hint=f'af send {words[0]} "…"')
        words = (*words, "-")
    *ids, text = words
    if text != "-":
        return tuple(ids), text
    return tuple(ids), text_of(sys.stdin.buffer.read(), "Standard input")


def _as_json(id: str, result: Delivery) -> dict[str, str | None]:
    return {"id": id, "outcome": result.outcome, "reason": result.reason, "source": result.source}


@click.command()
@ids_argument(required=True)
@click.option("--for", "states", metavar="STATES", help="Comma-separated; default: idle, waiting or ended.")
@click.option("--any", "any_is_enough", is_flag=True, help="Return as soon as one builder is there.")
@click.option("--timeout", type=click.FloatRange(min=0), metavar="SECONDS", help="Then exit with code 124.")
@json_option
def wait(
    ids: tuple[str, ...], states: str | None, any_is_enough: bool, timeout: float | None, as_json: bool
) -> None:
    """Wait until builders are idle, waiting for a person, or ended.

    A builder that fails or vanishes ends the wait at once with exit code 1.
    """
    from agent_farm.farm.wait import parse_states
    from agent_farm.farm.wait import wait as wait_for

    farm = current_farm(tolerant=True)
    known = list(farm.records())
    chosen = [match_builder(id, known) for id in dict.fromkeys(ids)]
    statuses = wait_for(farm, chosen, parse_states(states), any_is_enough=any_is_enough, timeout=timeout)
    if as_json:
        from agent_farm.farm.listing import list_builders

        builders = list_builders(farm, list(statuses), with_git=False)
        answer_json({"builders": [builder.to_json() for builder in builders]})
        return
    for id, status in statuses.items():
        answer(f"{id} {status.state}" + (f": {status.reason}" if status.reason else ""))
