"""All verbs in one literal table, so that a door which offers one imports no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from typing import Any

from agent_farm.operations.operation import CallerKind, Operation

# name -> module below operations/
MODULES = {
    "spawn": "spawn",
    "status": "status",
    "send": "send",
    "send_keys": "send_keys",
    "wait": "wait",
    "capture": "capture",
    "logs": "logs",
    "path": "path",
    "diff": "diff",
    "merge": "merge",
    "conflicts": "conflicts",
    "stop": "stop",
    "resume": "resume",
    "recover": "recover",
    "prune": "prune",
    "expire": "expire",
    "restore": "restore",
    "removed": "removed",
    "landing": "landing",
    "prompt": "prompt",
    "choices": "choices",
    "doctor": "doctor",
    "doctor_fix": "doctor_fix",
    "init": "init",
    "config_list": "config_list",
    "config_get": "config_get",
    "config_set": "config_set",
    "config_unset": "config_unset",
    "config_agree": "config_agree",
    "pool_fill": "pool_fill",
    "pool_drain": "pool_drain",
    "runtimes": "runtimes",
    "runtimes_check": "runtimes_check",
    "list_builders": "list_builders",
    "report": "report",
    "ask_architect": "ask_architect",
    "message_builder": "message_builder",
}


def load(name: str) -> Operation[Any, Any]:
    operation = import_module(f"agent_farm.operations.{MODULES[name]}").OPERATION
    assert isinstance(operation, Operation)
    assert operation.name == name
    return operation


def load_all() -> Iterator[Operation[Any, Any]]:
    return map(load, MODULES)


def may(caller: CallerKind, name: str) -> bool:
    return name in MODULES and caller in load(name).who
