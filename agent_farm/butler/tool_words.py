"""What a client is told of the tools beside their own words: of each parameter, and what each may do."""

from __future__ import annotations

READS = frozenset(
    {
        *("state_get", "state_list", "schedule_list", "sessions_list", "sessions_get"),
        *("list_builders", "status", "wait", "capture", "logs", "path", "diff", "conflicts"),
        *("list_sources", "ask_sources"),
    }
)
# what takes something away, or answers for a person
DESTROYS = frozenset({"prune", "state_delete", "schedule_delete", "sessions_stop", "send_keys"})
# twice is as good as once
REPEATS = frozenset({"stop", "state_delete", "schedule_delete", "sessions_stop", "report"})
# what has an AI CLI, and so the network, do something
OUTSIDE = frozenset({"trigger", "tick", "ask_sources", "spawn", "resume", "send", "message_builder"})

_PARAMETERS = {
    "any_is_enough": "Return when one of them is there, instead of all",
    "args": "A JSON object with what the protocol is given",
    "base": "Revision to start from; default: HEAD of the main checkout",
    "branch": "Go on with this branch, which exists",
    "context": "Text that is put before the prompt",
    "cron": "Five fields: minute hour day month weekday, as in 0 8 * * 1-5",
    "cwd": "Directory to run in; default: the butler's own. Only for the architect",
    "discard_changes": "Remove it although it has uncommitted changes, which are kept aside",
    "discard_commits": "Remove it although commits have not landed, which are kept aside",
    "enabled": "Whether it fires",
    "ephemeral": "Remove the builder when its runtime has ended and its work has landed",
    "fetch": "Bring the base up to date with its remote first",
    "files": "Paths that matter for the task, relative to the repository",
    "here": "Land on the branch that is checked out although it is not the base",
    "history": "Lines above the screen to add",
    "id": "Id of a builder, or a prefix that only one has",
    "ids": "Ids of builders, or prefixes that only one has each",
    "if_version": "Write only over this version, as state_get gave it; 0: only if there is no such key",
    "key": "Name under which it is kept",
    "keys": "Separated by spaces: Enter Escape Tab Up Down Left Right Space BSpace C-c, or one character",
    "late": "A due time that was missed is made up within so many seconds; 0: however late",
    "limit": "The newest so many",
    "max_turns": "Turns of the model, at most",
    "message": "One line of why",
    "model": "Model, by the name its runtime knows; default: the configured one",
    "name": "Name of the schedule: letters, digits, . _ and -",
    "permissions": "What it may do unasked: ask (nothing), edit (files of its directory) or all",
    "prefix": "Only keys that start with it",
    "project": "Id of a spec, as in 0042",
    "prompt": "What the session is to do",
    "protocol": "Name of a protocol of the repository",
    "question": "What is to be answered",
    "resume": "Id of a session that has ended: its conversation goes on",
    "role": "File of another system prompt, relative to the repository",
    "runtime": "Name of the runtime, as in claude-code; default: the configured one",
    "session_id": "Id of a session, or a prefix that only one has",
    "shell": "A worktree with a shell instead of an AI CLI",
    "sources": "Names of sources, as list_sources gives them",
    "stat": "Only which files, and how many lines",
    "state": "Only those in this state",
    "states": "States to wait for, separated by commas; default: idle, waiting or ended",
    "stop": "End the named builders first, if they run",
    "strategy": "How the commits land; default: the farm's merge.strategy",
    "task": "What the builder is to do",
    "text": "The message",
    "timeout": "Seconds to wait, at most",
    "timezone": "As in Europe/Berlin; default: the machine's",
    "until": "The last day, as in 2027-03-31, or a time",
    "value": "Any JSON value",
    "wait": "Wait for the end; without, `sessions_get` tells of it",
}
_OF_ONE_TOOL = {
    ("prune", "ids"): "Whole ids of builders; without ids all that are finished and landed",
    ("stop", "ids"): "Ids of builders, or prefixes that only one has each",
    ("status", "ids"): "Ids of builders, or prefixes that only one has each; default: all",
    ("conflicts", "ids"): "Ids of builders, or prefixes that only one has each; default: all",
    ("report", "state"): "How you are",
    ("logs", "limit"): "The newest so many events; 0: all",
    ("merge", "message"): "Message of the commit; default: one that names the builder and its task",
    ("trigger", "timeout"): "End the session after so many seconds",
}


def describe(tool: str, parameter: str) -> str | None:
    return _OF_ONE_TOOL.get((tool, parameter)) or _PARAMETERS.get(parameter)
