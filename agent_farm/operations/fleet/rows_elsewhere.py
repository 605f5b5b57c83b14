"""What the machines of the fleet report about this farm's builders.

A machine is trusted less than this one: a report is only kept if it fits a builder that was placed there.
"""

from __future__ import annotations

import os
import time
from collections.abc import Collection, Mapping
from typing import Any, TypeVar

import msgspec
from msgspec.structs import asdict, replace

from agent_farm.builders.pull_request import PullRequest
from agent_farm.builders.record import BuilderRecord
from agent_farm.builders.status import Status
from agent_farm.documents import load_if_whole
from agent_farm.errors import Unreachable
from agent_farm.farm.farm import Farm
from agent_farm.farm.listing import Builder
from agent_farm.fleet.book import Book, Machine, Placed, Row, read_book
from agent_farm.operations.operation import Answer
from agent_farm.operations.shown import BuilderShown
from agent_farm.printable import printable
from agent_farm.typed import make_known

_LAST_YEAR = 253_402_300_800

A = TypeVar("A", bound=Answer)


def answer_of(kind: type[A], document: Mapping[str, Any], host: str) -> A:
    """A machine's answer, complete and of the right form, and without characters that move a cursor."""
    make_known(kind)
    try:
        given = {name: value for name, value in document.items() if name != "version"}
        return msgspec.convert(_clean(given), kind)
    except (msgspec.ValidationError, ValueError, RecursionError) as error:
        raise Unreachable(f"{host} sent an invalid answer", why=printable(str(error))[:300]) from error


def _clean(value: Any) -> Any:
    if isinstance(value, str):
        return printable(value)
    if isinstance(value, list):
        return [_clean(one) for one in value]
    if isinstance(value, dict):
        return {_clean(name): _clean(one) for name, one in value.items()}
    return value


def row_of(id: str, placed: Placed, shown: BuilderShown) -> Row:
    """Unreachable if it cannot be the builder that was placed there."""
    try:
        if shown.id != id:
            raise ValueError(f"It reports it as {shown.id!r:.60}.")
        return _row(placed, shown)
    except (msgspec.ValidationError, ValueError) as error:
        what = f"{placed.host} reports something impossible about {id}"
        raise Unreachable(what, why=printable(str(error))[:300]) from error


def _row(placed: Placed, shown: BuilderShown) -> Row:
    fields = {name: getattr(shown, name) for name in BuilderRecord.__struct_fields__}
    own = {"base": placed.base, "base_commit": placed.base_commit, "after": None, "stack": None}
    own |= {"issue": placed.issue, "source": None}
    git = None
    if shown.git is not None:
        git = {**asdict(shown.git), "at": _moment(shown.git.at) or time.time()}
    told = {
        "record": {**fields, **own},
        "status": {**asdict(shown.status), "at": _moment(shown.status.at)},
        "git": git,
        "usage": shown.usage,
    }
    return msgspec.convert(msgspec.to_builtins(told), Row)  # as it will be read back


def _moment(at: float | None) -> float | None:
    return at if at is not None and 0 <= at < _LAST_YEAR else None


def known_rows(farm: Farm) -> tuple[Builder, ...]:
    """As last reported; no machine is asked."""
    return shown_rows(farm, read_book(farm))


def shown_rows(farm: Farm, book: Book, ids: Collection[str] | None = None) -> tuple[Builder, ...]:
    """Builders elsewhere as `af status` shows them; on a machine that cannot be asked, they are not gone."""
    chosen = book.builders if ids is None else {id: book.builders[id] for id in ids}
    runs = frozenset(os.listdir(farm.paths.runs) if farm.paths.runs.is_dir() else ())
    return tuple(_shown(farm, id, placed, book.machine(placed.host), runs) for id, placed in chosen.items())


def _shown(farm: Farm, id: str, placed: Placed, machine: Machine, runs: Collection[str]) -> Builder:
    """`runs` are the builders for which something is kept here."""
    row = placed.row
    record = row.record if row else record_here(farm, id, placed)
    status = row.status if row else Status("unknown", "process")
    if machine.problem:
        status = _unasked(farm, placed, machine, status)
    elif placed.gone:
        why = f"{placed.host} has no such builder; af prune {id} takes it off the list"
        status = Status("failed", "process", reason=why)
    elif row is None:
        status = replace(status, reason=f"{placed.host} has not confirmed yet that it exists")
    seen_at = machine.seen_at or None if machine.problem or machine.is_late else None
    git, usage = (row.git, row.usage) if row else (None, None)
    found = Builder(record, status, git, usage, host=placed.host, seen_at=seen_at)
    if id not in runs:
        return found
    run = farm.run(id)
    from agent_farm.farm.proofs import read_proofs  # most builders have no proof

    proofs = read_proofs(farm, [record_here(farm, id, placed)], {id: git} if git else {})
    return replace(found, proof=proofs.get(id), pull_request=load_if_whole(run.pull_request, PullRequest))


def is_lost(farm: Farm, machine: Machine) -> bool:
    """Whether it was asked more than once, and has not answered for `fleet.lost_seconds`."""
    since = machine.silent_since
    if since is None or machine.misses < 2:
        return False
    return time.time() - since >= farm.settings.number("fleet.lost_seconds")


def _unasked(farm: Farm, placed: Placed, machine: Machine, status: Status) -> Status:
    """What is known about it, and how old that is. If it had ended, that is final."""
    told = [str(machine.problem)]
    if placed.row:
        told.append(f"it was {status.state} {ago(machine.seen_at)}")
    if placed.checkpoint:
        told.append(f"its last checkpoint was made {ago(placed.checkpoint.at)}")
    if placed.problem:
        told.append(placed.problem)
    state = "unknown"
    if is_lost(farm, machine):
        state = status.state if status.is_finished else "lost"
        if state == "lost":
            told.append("af recover --on places it again")
    return replace(status, state=state, source="process", reason="; ".join(told))


def ago(at: float) -> str:
    seconds = max(0, int(time.time() - at))
    for name, size in (("d", 86_400), ("h", 3600), ("min", 60)):
        if seconds >= 2 * size:
            return f"{seconds // size} {name} ago"
    return f"{seconds} s ago"


def record_here(farm: Farm, id: str, placed: Placed) -> BuilderRecord:
    """The builder as if it were stopped here and had left nothing but its branch."""
    here: dict[str, Any] = {
        "branch": placed.branch,
        "worktree": str(farm.paths.worktree(id)),
        "session": farm.paths.session(id),
        "prompt_file": None,
        "role": None,
        "source": placed.source,
        "ports": (),
        "state": "stopped",
        "reason": f"it is on {placed.host}",
        "socket": "/",
        "subdirectory": "",
        "ephemeral": False,
    }
    if placed.row:
        return replace(placed.row.record, **here)
    return BuilderRecord(
        **here,
        id=id,
        type="task",
        runtime="unknown",
        model=None,
        base=placed.base,
        base_commit=placed.base_commit,
        task_text=placed.title,
        protocol_name=None,
        protocol_args=None,
        spec=None,
        files=(),
        conversation_id=None,
        created_at=placed.created_at,
        run="0" * 12,
        permissions="edit",
        new_branch=True,
    )
