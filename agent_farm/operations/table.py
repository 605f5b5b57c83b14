"""All verbs in one literal table, so that a door which offers one imports no other."""

from __future__ import annotations

from collections.abc import Iterator
from importlib import import_module
from keyword import iskeyword
from typing import Any

from agent_farm.operations.operation import CallerKind, Door, Operation

# name -> module below operations/, which holds it under the same name
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
    "land_abort": "land_abort",
    "conflicts": "conflicts",
    "sync": "sync",
    "review": "review",
    "review_show": "review_show",
    "review_image": "review_image",
    "review_mark": "review_mark",
    "review_comment": "review_comment",
    "review_send": "review_comment",
    "review_decide": "review_decide",
    "check": "check",
    "compare": "compare",
    "keep": "keep",
    "pr": "pr",
    "pr_refresh": "pr",
    "stop": "stop",
    "setup": "setup",
    "resume": "resume",
    "recover": "recover",
    "prune": "prune",
    "expire": "expire",
    "eject": "eject",
    "import": "importing",
    "uninstall": "uninstall",
    "restore": "restore",
    "removed": "restore",
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
    "notify": "notify",
    "pool_status": "pool",
    "pool_fill": "pool",
    "pool_drain": "pool",
    "runtimes": "runtimes",
    "runtimes_check": "runtimes",
    "list_builders": "status",
    "farms": "farms",
    "fleet_add": "fleet",
    "fleet_status": "fleet",
    "fleet_remove": "fleet",
    "fleet_up": "fleet_engine",
    "fleet_join": "fleet_engine",
    "fleet_down": "fleet_engine",
    "report": "from_builders",
    "ask_architect": "from_builders",
    "message_builder": "send",
    "trigger": "trigger",
    "tick": "trigger",
    "sessions_list": "sessions",
    "sessions_get": "sessions",
    "sessions_stop": "sessions",
    "sessions_prune": "sessions",
    "usage": "sessions",
    "costs": "costs",
    "state_get": "state",
    "state_set": "state",
    "state_list": "state",
    "state_delete": "state",
    "schedule_list": "schedule",
    "schedule_create": "schedule",
    "schedule_update": "schedule",
    "schedule_delete": "schedule",
    "schedule_history": "schedule",
    "schedule_run": "schedule",
    "credentials_list": "credentials",
    "credentials_set": "credentials",
    "credentials_unset": "credentials",
    "butler_start": "butler",
    "butler_stop": "butler",
    "butler_status": "butler",
    "list_sources": "sources",
    "ask_sources": "sources",
    "sources_show": "sources",
    "sources_add": "sources",
    "sources_remove": "sources",
    "sources_update": "sources",
}


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
