"""All verbs in one literal table, so that a door which offers one imports no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from agent_farm.operations.operation import CallerKind, Operation

# name -> module below operations/, which holds it under the same name in capitals
MODULES = {
    "spawn": "spawn",
    "queue": "queue",
    "status": "status",
    "send": "send",
    "send_keys": "send",
    "wait": "wait",
    "capture": "look",
    "logs": "look",
    "path": "look",
    "diff": "diff",
    "merge": "merge",
    "land": "land",
    "land_status": "land",
    "land_continue": "land",
    "land_abort": "land",
    "conflicts": "conflicts",
    "sync": "sync",
    "check": "check",
    "stop": "stop",
    "resume": "resume",
    "recover": "resume",
    "prune": "prune",
    "expire": "expire",
    "restore": "restore",
    "removed": "removed",
    "landing": "landing",
    "prompt": "look",
    "choices": "choices",
    "doctor": "doctor",
    "doctor_fix": "doctor",
    "init": "init",
    "config_list": "config",
    "config_get": "config",
    "config_set": "config",
    "config_unset": "config",
    "config_agree": "config",
    "pool_fill": "pool",
    "pool_drain": "pool",
    "runtimes": "runtimes",
    "runtimes_check": "runtimes",
    "list_builders": "status",
    "report": "from_builders",
    "ask_architect": "from_builders",
    "message_builder": "send",
}


def load(name: str) -> Operation[Any, Any]:
    operation = getattr(import_module(f"agent_farm.operations.{MODULES[name]}"), name.upper())
    assert isinstance(operation, Operation)
    assert operation.name == name
    return operation


def load_all() -> Iterator[Operation[Any, Any]]:
    return map(load, MODULES)


def may(caller: CallerKind, name: str) -> bool:
    return name in MODULES and caller in load(name).who
