"""`config_agree`: all that the repository wants and nobody has agreed to yet, asked about at once."""

from __future__ import annotations

from agent_farm.consent import HINT, not_agreed, require_consent
from agent_farm.errors import ConsentNeeded
from agent_farm.farm.repository_requests import all_requests
from agent_farm.operations.builders import Yes
from agent_farm.operations.operation import Answer, Context, Operation, Request, only, single


class ConfigAgree(Request):
    yes: Yes = False


class Wish(Answer):
    """`origin` is the setting or file that it comes from, `shown` how a person is asked about it."""

    origin: str
    content: str
    shown: str


class Agreed(Answer):
    agreed: tuple[Wish, ...]


def _agree(context: Context, request: ConfigAgree) -> Agreed:
    farm = context.farm
    new = not_agreed(farm.root, all_requests(farm))
    try:
        require_consent(farm.root, new, yes=request.yes, ask=context.ask)
    except ConsentNeeded as error:
        error.hint = f"{HINT} --yes"
        raise
    return Agreed(tuple(Wish(one.origin, one.content, one.shown) for one in new))


OPERATION = Operation(
    "config_agree",
    "Show what this repository wants that nobody has agreed to yet, and ask about it",
    ConfigAgree,
    Agreed,
    single(_agree),
    only,
    effect="changes",
    tolerant=True,
    repeats=True,
    details="Commands, arguments, permissions, variables, copies, schedules and scripts of a repository take"
    " effect once its user has agreed to them; what is changed afterwards is asked about again.",
)
