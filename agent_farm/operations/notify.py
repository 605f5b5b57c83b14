"""`notify`: send a message to the targets of `notify.to`, as a test."""

from __future__ import annotations

import os
from collections.abc import Iterator
from typing import Annotated

from msgspec import Meta

from agent_farm.consent import require_consent
from agent_farm.errors import NotFound
from agent_farm.launch import as_command
from agent_farm.operations.builders import Yes
from agent_farm.operations.declare import in_parts
from agent_farm.operations.operation import Answer, Context, Request, gathered
from agent_farm.pane.tell import NotTold, shown_target, tell


class Notify(Request):
    text: Annotated[str, Meta(description="Text of the message")] = "a test"
    yes: Yes = False


class TargetTold(Answer):
    """`problem` says why nobody can have noticed it; null if it arrived."""

    target: str
    problem: str | None = None


class AllTold(Answer):
    targets: tuple[TargetTold, ...]

    @property
    def exit_code(self) -> int:
        return 1 if any(one.problem for one in self.targets) else 0


@in_parts(
    "Send a message to all targets of notify.to, to see that it arrives",
    gathered(AllTold, targets=TargetTold),
    effect="changes",
    outside=True,
)
def notify(context: Context, request: Notify) -> Iterator[TargetTold]:
    farm = context.farm
    wanted = farm.settings.requests(("notify.to",))
    require_consent(farm.root, wanted, yes=request.yes, ask=context.ask)
    targets = farm.settings.items("notify.to")
    if not targets:
        raise NotFound("notify.to is empty", hint=as_command("af", "config", "set", "notify.to", "tmux"))
    facts = {"AF_BUILDER_ID": "af notify", "AF_STATE": "test", "AF_EVENT": "test", "AF_REASON": request.text}
    tmux = ("tmux", "-S", farm.tmux.path(os.environ))
    for target in targets:
        try:
            tell(target, facts, farm=farm.paths.name, tmux=tmux)
        except NotTold as error:
            yield TargetTold(shown_target(target), str(error))
        else:
            yield TargetTold(shown_target(target))
