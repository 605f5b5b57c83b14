"""`prompt`: what a builder was told at its start, whole."""

from __future__ import annotations

from pathlib import Path

from agent_farm.operations.builders import BuilderId, choose
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class Prompt(Request):
    id: BuilderId


class Told(Answer):
    """Null where it was started without."""

    id: str
    prompt: str | None
    role: str | None


def _read(context: Context, request: Prompt) -> Told:
    record = choose(context, request.id)
    run = context.farm.run(record.id)
    return Told(id=record.id, prompt=_text_of(run.prompt), role=_text_of(run.role))


def _text_of(file: Path) -> str | None:
    try:
        return file.read_bytes().decode("utf-8", "replace")
    except FileNotFoundError:
        return None


OPERATION = Operation(
    "prompt",
    "Show the prompt and the role that a builder was started with",
    Prompt,
    Told,
    single(_read),
    only,
    effect="reads",
    tolerant=True,
    pool="look",
)
