"""`af prune`."""

from __future__ import annotations

from collections.abc import Sequence

from agent_farm.cli.cells import moment
from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.fields import option_of
from agent_farm.cli.forgotten import show_forgotten
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.launch import as_command
from agent_farm.operations.expire import AllExpired, Expired, Left
from agent_farm.operations.prune import Pruned, Removal, Running, Stays, WouldRemove
from agent_farm.operations.stop import Forgotten

EPILOG = """Finished: exited, failed, stopped or lost. Landed: every commit is on the base branch, the main
checkout's HEAD or a remote-tracking branch (also rebased or squashed), and nothing is
uncommitted.

\b
A removed builder is kept, but for directories that a tool can regenerate
(node_modules). af restore ID brings it back, until it is deleted for good:
  af prune --expire 30d

\b
Exit code 4: refused, because work would be lost; the evidence is printed.
"""


def show_prune(part: Removal | WouldRemove | Forgotten | Stays | Running) -> None:
    if isinstance(part, Forgotten):
        show_forgotten(part)
    elif isinstance(part, Stays):
        narrate(printable(f"{part.id} stays: {part.reason}"))
    elif isinstance(part, WouldRemove):
        answer(f"{part.id} would be removed")
    elif isinstance(part, Removal):
        answer(printable(f"{part.id} removed" + (f", with {part.branch}" if part.branch else "")))
        if part.kept:
            narrate(f"  kept in the trash: {printable(_places(part.kept))}")
        if part.left_out:
            narrate(f"  deleted (can be regenerated): {printable(_places(part.left_out))}")


def _conclude_prune(found: Pruned) -> None:
    if found.running:
        landed = f"{len(found.running)} landed builder{' is' if len(found.running) == 1 else 's are'}"
        narrate(f"{landed} still running.")
        narrate_hint("af prune --landed")
    elif not (found.removed or found.would_remove or found.forgotten or found.refused):
        narrate("Nothing to prune: no builder has both finished and landed.")
    if found.removed:
        narrate_hint(f"af restore {found.removed[0].id if len(found.removed) == 1 else 'ID'}")


def _places(paths: Sequence[str]) -> str:
    """`node_modules, __pycache__ (in 12 places)`: a package has one in each of its directories."""
    by_name: dict[str, list[str]] = {}
    for path in paths:
        by_name.setdefault(path.rpartition("/")[2], []).append(path)
    return ", ".join(
        found[0] if len(found) == 1 else f"{name} (in {len(found)} places)" for name, found in by_name.items()
    )


def _show_expired(part: Expired | Left) -> None:
    if isinstance(part, Expired):
        answer(f"{part.id} of {moment(part.epoch)} deleted for good")
    else:
        narrate(f"{printable(part.path)} cannot be deleted: it holds files of another user.")
        narrate_hint(as_command("sudo", "rm", "-rf", part.path))


def _conclude_expired(found: AllExpired) -> None:
    if not (found.expired or found.refused or found.left):
        narrate("Nothing to delete.")


prune = command_of(
    Way("prune", show_prune, _conclude_prune),
    others={"age": Way("expire", _show_expired, _conclude_expired)},
    also=[option_of("expire", "age", "--expire", metavar="AGE")],
    epilog=EPILOG,
)
