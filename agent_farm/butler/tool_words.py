"""What a client is told of the tools beside their own words: of each parameter, and what each may do."""

from __future__ import annotations

READS = frozenset(
    {
        *("state_get", "state_list", "schedule_list", "sessions_list", "sessions_get"),
        *("list_sources", "ask_sources"),
    }
)
# what takes something away
DESTROYS = frozenset({"state_delete", "schedule_delete", "sessions_stop"})
# twice is as good as once
REPEATS = frozenset({"state_delete", "schedule_delete", "sessions_stop"})
# what has an AI CLI, and so the network, do something
OUTSIDE = frozenset({"trigger", "tick", "ask_sources"})

_PARAMETERS = {
    "context": "Text that is put before the prompt",
    "cron": "Five fields: minute hour day month weekday, as in 0 8 * * 1-5",
    "cwd": "Directory to run in; default: the butler's own. Only for the architect",
    "enabled": "Whether it fires",
    "if_version": "Write only over this version, as state_get gave it; 0: only if there is no such key",
    "key": "Name under which it is kept",
    "late": "A due time that was missed is made up within so many seconds; 0: however late",
    "limit": "The newest so many",
    "max_turns": "Turns of the model, at most",
    "model": "Model, by the name its runtime knows; default: the configured one",
    "name": "Name of the schedule: letters, digits, . _ and -",
    "permissions": "What it may do unasked: ask (nothing), edit (files of its directory) or all",
    "prefix": "Only keys that start with it",
    "prompt": "What the session is to do",
    "question": "What is to be answered",
    "resume": "Id of a session that has ended: its conversation goes on",
    "runtime": "Name of the runtime, as in claude-code; default: the configured one",
    "session_id": "Id of a session, or a prefix that only one has",
    "sources": "Names of sources, as list_sources gives them",
    "state": "Only those in this state",
    "timeout": "End the session after so many seconds",
    "timezone": "As in Europe/Berlin; default: the machine's",
    "until": "The last day, as in 2027-03-31, or a time",
    "value": "Any JSON value",
    "wait": "Wait for the end; without, `sessions_get` tells of it",
}


def describe(parameter: str) -> str | None:
    return _PARAMETERS.get(parameter)
