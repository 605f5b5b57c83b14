"""What the API does to builders: the same use cases, refusals and words as the command line."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from agent_farm.dashboard.desk import Desk
from agent_farm.dashboard.operations import Call, Operation
from agent_farm.dashboard.schemas import BUILDER
from agent_farm.dashboard.values import Field
from agent_farm.dashboard.views import FLAG, MAYBE_TEXT, TEXT, builder_json, object_schema
from agent_farm.farm.listing import list_builders

Answer = Mapping[str, Any]


def send_text(desk: Desk, call: Call) -> Answer:
    from agent_farm.farm.send import send

    farm = desk.farm()
    record = desk.require(farm, call.path["id"])
    delivery = send(farm, record, call.body["text"])
    return {"delivery": {"outcome": delivery.outcome, "reason": delivery.reason, "source": delivery.source}}


def resume_builder(desk: Desk, call: Call) -> Answer:
    from agent_farm.farm.resume import resume

    farm = desk.farm()
    resumed = resume(farm, desk.require(farm, call.path["id"]), yes=bool(call.body["agree"]))
    shown = list_builders(farm, [resumed.record.id], with_git=False)[0]
    return {"builder": builder_json(shown), "continues": resumed.continues}


_ID = "/api/builders/{id}"
_DELIVERY = object_schema({"outcome": TEXT, "reason": MAYBE_TEXT, "source": MAYBE_TEXT})
ACTS = (
    Operation(
        "POST", f"{_ID}/send", "send_text",
        "Deliver a message: `submitted`, `held` (nothing was typed) or `failed`", send_text,
        {"delivery": _DELIVERY}, body=(Field("text", required=True),),
    ),
    Operation(
        "POST", f"{_ID}/resume", "resume_builder", "Start its runtime again, with the same conversation",
        resume_builder, {"builder": BUILDER, "continues": FLAG},
        body=(Field("agree", "flag", "agree to what the repository wants to run, as --yes"),),
    ),
)  # fmt: skip
