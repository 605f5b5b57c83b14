"""`doctor_fix`: heals what `doctor` finds and can be healed."""

from __future__ import annotations

from collections.abc import Iterator

from agent_farm.operations.doctor import Examined, Found, collect, examine
from agent_farm.operations.operation import Context, Operation, Request


class DoctorFix(Request):
    pass


def _run(context: Context, request: DoctorFix) -> Iterator[Found]:
    return examine(context.farm, fix=True)


OPERATION = Operation(
    "doctor_fix",
    "Heal what is broken in the farm and can be healed; nothing that a person made is removed",
    DoctorFix,
    Examined,
    _run,
    collect,
    effect="changes",
    tolerant=True,
    repeats=True,
)
