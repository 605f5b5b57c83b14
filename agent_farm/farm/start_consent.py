"""What a repository wants to happen around a builder, and its user's consent to it."""

from __future__ import annotations

import os
from collections.abc import Sequence

from agent_farm.consent import Ask, Request, named_paths, require_consent
from agent_farm.farm.chosen_runtime import Chosen
from agent_farm.farm.farm import Farm
from agent_farm.inside import read_plain
from agent_farm.runtimes.origin import agree_by_name

INCLUDE_FILE = ".worktreeinclude"
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


def include_requests(farm: Farm) -> list[Request]:
    """The patterns of .worktreeinclude; those of the settings are asked about with the settings."""
    try:
        data = read_plain(farm.repository.checkout / INCLUDE_FILE)
    except FileNotFoundError:
        return []
    return [Request(INCLUDE_FILE, data.decode(errors="surrogateescape").strip())]


def scripts_on_base(farm: Farm, commit: str) -> list[Request]:
    """Scripts that worktree.setup names and that are other ones on the base: a builder's tree has those."""
    requests = []
    for setup in farm.settings.requests(["worktree.setup"]):
        names = [name for name in named_paths(setup.content) if not os.path.isabs(name)]
        kinds = farm.repository.entry_kinds(commit, names)
        if places := [name for name in names if kinds[name] == "tree"]:
            below = [name for name in named_paths(setup.content, places) if not os.path.isabs(name)]
            kinds = farm.repository.entry_kinds(commit, below)
        for name in (name for name, kind in kinds.items() if kind == "blob"):
            content = farm.repository.read_blob(commit, name)
            here = farm.root / name
            if not here.is_file() or here.read_bytes() != content:
                text = content.decode(errors="surrogateescape")
                requests.append(Request(f"{setup.origin}, {name} on the base", text))
    return requests
