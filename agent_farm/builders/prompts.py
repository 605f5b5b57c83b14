"""The first message to a builder's runtime, for each kind of task."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agent_farm.builders.ids import Spec

PROTOCOLS = "codev/protocols"
Args = Mapping[str, Any] | None


def spec_prompt(spec: Spec, *, has_plan: bool) -> str:
    prompt = f"Implement the feature specified in {spec.spec_path}."
    return f"{prompt} Follow the plan in {spec.plan_path}." if has_plan else prompt


def task_prompt(text: str, files: Sequence[str] = ()) -> str:
    return f"{text}\n\nRelevant files: {', '.join(files)}" if files else text


def protocol_prompt(name: str, args: Args = None, subject: str | None = None) -> str:
    """`subject` is what the protocol is run for: a spec or an issue."""
    parts = [f"You are running the {name} protocol.", subject, args_block(args)]
    return "\n\n".join(part for part in [*parts, f"Start by reading {protocol_path(name)}"] if part)


def phases_text(phases: Sequence[str]) -> str:
    names = ", ".join(phases)
    return f"Its phases: {names}. As you begin one, call the tool `report` with its name as `phase`."


def args_block(args: Args) -> str | None:
    if args is None:
        return None
    return f"Protocol arguments:\n```json\n{json.dumps(args, indent=2, ensure_ascii=False)}\n```"


def issue_prompt(name: str, url: str, quoted: str) -> str:
    """`quoted` marks its own beginning and end."""
    return "\n".join(line for line in (f"Work on this issue: {name}", url) if line) + f"\n\n{quoted}"


def protocol_path(name: str) -> str:
    return f"{protocol_folder(name)}/protocol.md"


def protocol_folder(name: str) -> str:
    return f"{PROTOCOLS}/{name}"


# The message to a builder that was in the middle of a turn when its runtime ended.
GO_ON = "You were interrupted in the middle of your work. Look at what is already done, then carry on."
