"""What builders on other machines have used, by their checkpoints and by what their machines said since."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Sequence

from agent_farm.builders.spending import Spent, copied_spending
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm
from agent_farm.fleet.book import Book, Placed, Used
from agent_farm.git.checkpoint_reading import read_everywhere
from agent_farm.git.checkpoints import kept_ref
from agent_farm.operations.costs import Known, Sum, day_of, has_landed
from agent_farm.operations.fleet.refresh import refresh_quickly

_JOURNAL = "run/usage.jsonl"


def costs_elsewhere(farm: Farm) -> Sequence[Known]:
    """Those that were removed, too. The machines are asked what a status asks them."""
    book = refresh_quickly(farm)
    return [*_there(farm, book), *_removed(book)]


def _there(farm: Farm, book: Book) -> Iterator[Known]:
    spent = _spent(farm, book, book.builders)
    for id, placed in book.builders.items():
        if placed.row is not None:
            yield Known.of(placed.row.record, spent[id], has_landed(placed.row.git))


def _removed(book: Book) -> Iterator[Known]:
    for id, placed in book.removed.items():
        if placed.used is not None and id not in book.builders:
            used = placed.used
            yield Known(id, placed.title, used.runtime, used.spent, used.landed, removed=True)


def used_by(farm: Farm, book: Book, id: str, *, landed: bool) -> Used | None:
    """As far as home knows, where its checkpoint is about to go."""
    placed = book.builder(id)
    if placed.row is None:
        return None
    parts: dict[tuple[str, str], list[Spent]] = {}
    for one in _spent(farm, book, [id])[id]:
        parts.setdefault((one.run, day_of(one)), []).append(one)
    return Used(placed.row.record.runtime, tuple(map(_together, parts.values())), landed)


def _together(parts: Sequence[Spent]) -> Spent:
    sum = Sum.of(parts)
    return Spent(parts[0].at, parts[0].run, sum.input_tokens, sum.output_tokens, sum.cached_tokens, sum.cost)


def _spent(farm: Farm, book: Book, ids: Collection[str]) -> dict[str, list[Spent]]:
    """A checkpoint has what was used in each turn; its machine may have said more since."""
    refs = {kept_ref(id): id for id in ids if book.builders[id].checkpoint is not None}
    journals = {refs[ref]: one for ref, one in _journals(farm, list(refs)).items()}
    return {id: _of(book.builders[id], book, journals.get(id, b"")) for id in ids}


def _journals(farm: Farm, refs: Sequence[str]) -> dict[str, bytes]:
    """One that cannot be read, or is too long, spoils none of the others: they are then read one by one."""
    try:
        return read_everywhere(farm.repository, refs, _JOURNAL)
    except (AgentFarmError, ValueError):
        if len(refs) == 1:
            return {}
        return {ref: found for one in refs for ref, found in _journals(farm, [one]).items()}


def _of(placed: Placed, book: Book, journal: bytes) -> list[Spent]:
    row = placed.row
    if row is None:
        return []
    at = row.status.at or book.machine(placed.host).seen_at
    return copied_spending(journal, row.usage, at=at, run=row.record.run)
