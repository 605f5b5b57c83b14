"""What a repository wants to happen around a builder, and its user's consent to it."""

from __future__ import annotations

from collections.abc import Sequence

from agent_farm.consent import Ask, Request, require_consent
from agent_farm.farm.farm import Farm
from agent_farm.farm.runtime import Chosen
from agent_farm.runtimes.origin import agree_by_name

# What takes effect when a builder starts, whatever its runtime.
AT_A_START = ("worktree.setup", "worktree.copy", "notify.command", "env.pass", "tmux.socket")


def agree_to_start(
    farm: Farm,
    chosen: Chosen,
    *,
    named: bool = False,
    more: Sequence[Request] = (),
    yes: bool = False,
    ask: Ask | None = None,
) -> None:
    """ConsentNeeded unless all that the repository wants was agreed to in its present form, `more` included;
    ToolMissing when the runtime cannot be used all the same.

    A runtime of the repository's own that the user `named` is agreed to by that, and from then on.
    """
    farm.settings.require_good()
    if named:
        agree_by_name(farm.root, chosen.name)
    requests = [*chosen.requests, *farm.settings.requests(AT_A_START), *more]
    require_consent(farm.root, requests, yes=yes, ask=ask)
    chosen.require_usable()
