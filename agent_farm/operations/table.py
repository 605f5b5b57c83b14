"""All verbs in one literal table, so that a door that offers one verb imports no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from keyword import iskeyword
from typing import Any

from agent_farm.operations.operation import CallerKind, Door, Operation

# module below operations/ -> the verbs in it
_VERBS: dict[str, tuple[str, ...]] = {
    "spawn": ("spawn",),
    "queue": ("queue",),
    "status": ("status", "list_builders"),
    "send": ("send", "send_keys", "message_builder"),
    "wait": ("wait",),
    "look": ("capture", "logs", "path", "prompt"),
    "diff": ("diff",),
    "merge": ("merge",),
    "land": ("land", "land_status", "land_continue"),
    "land_abort": ("land_abort",),
    "conflicts": ("conflicts",),
    "sync": ("sync",),
    "review": ("review",),
    "review_show": ("review_show",),
    "review_image": ("review_image",),
    "review_mark": ("review_mark",),
    "review_comment": ("review_comment", "review_send"),
    "review_decide": ("review_decide",),
    "check": ("check",),
    "compare": ("compare",),
    "keep": ("keep",),
    "pr": ("pr", "pr_refresh"),
    "stop": ("stop",),
    "setup": ("setup",),
    "resume": ("resume",),
    "recover": ("recover",),
    "prune": ("prune",),
    "expire": ("expire",),
    "eject": ("eject",),
    "importing": ("import",),
    "uninstall": ("uninstall",),
    "restore": ("restore", "removed"),
    "landing": ("landing",),
    "choices": ("choices",),
    "doctor": ("doctor", "doctor_fix"),
    "init": ("init",),
    "config": ("config_list", "config_get", "config_set", "config_unset", "config_agree"),
    "notify": ("notify",),
    "pool": ("pool_status", "pool_fill", "pool_drain"),
    "runtimes": ("runtimes", "runtimes_check"),
    "farms": ("farms",),
    "fleet.machines": ("fleet_add", "fleet_status"),
    "fleet.removing": ("fleet_remove",),
    "fleet.checkpoint": ("fleet_checkpoint",),
    "fleet.draining": ("fleet_drain",),
    "fleet.clusters": ("fleet_up", "fleet_join", "fleet_down"),
    "from_builders": ("report", "ask_architect"),
    "trigger": ("trigger", "tick"),
    "sessions": ("sessions_list", "sessions_get", "sessions_stop", "sessions_prune", "usage"),
    "costs": ("costs",),
    "state": ("state_get", "state_set", "state_list", "state_delete"),
    "schedule": (
        "schedule_list",
        "schedule_create",
        "schedule_update",
        "schedule_delete",
        "schedule_history",
        "schedule_run",
    ),
    "credentials": ("credentials_list", "credentials_set", "credentials_unset"),
    "butler": ("butler_start", "butler_stop", "butler_status"),
    "sources": (
        "list_sources",
        "ask_sources",
        "sources_show",
        "sources_add",
        "sources_remove",
        "sources_update",
    ),
}
MODULES = {verb: module for module, verbs in _VERBS.items() for verb in verbs}


def load(name: str) -> Operation[Any, Any]:
    module = import_module(f"agent_farm.operations.{MODULES[name]}")
    operation = getattr(module, f"{name}_" if iskeyword(name) else name)
    assert isinstance(operation, Operation)
    assert operation.name == name
    return operation


def load_all() -> Iterator[Operation[Any, Any]]:
    return map(load, MODULES)


def offered(door: Door, caller: CallerKind) -> Iterator[Operation[Any, Any]]:
    return (operation for operation in load_all() if door in operation.doors and caller in operation.who)
