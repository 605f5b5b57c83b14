"""The shapes of answers, for the OpenAPI description."""

from __future__ import annotations

from typing import Any

from agent_farm.builders.config import BUILDER_TYPES
from agent_farm.builders.status import STATES
from agent_farm.dashboard.views import (
    ANYTHING,
    FLAG,
    MAYBE_FLAG,
    MAYBE_NUMBER,
    MAYBE_TEXT,
    MAYBE_WHOLE,
    NUMBER,
    TEXT,
    WHOLE,
    list_of,
    object_schema,
)
from agent_farm.sessions.session import SESSION_STATES

STATUS = object_schema(
    {
        "state": {"type": "string", "enum": list(STATES)},
        "source": TEXT,
        "at": MAYBE_NUMBER,
        "exit_code": MAYBE_WHOLE,
        "reason": MAYBE_TEXT,
        "cut_short": FLAG,
    }
)
GIT = {
    **object_schema(
        {
            "dirty": MAYBE_WHOLE,
            "untracked": MAYBE_WHOLE,
            "ahead": MAYBE_WHOLE,
            "behind": MAYBE_WHOLE,
            "missing": {"type": ["string", "null"], "enum": ["base", "branch", None]},
            "landed": MAYBE_FLAG,
            "branch": {**MAYBE_TEXT, "description": "what is checked out; null when HEAD is detached"},
            "commit": MAYBE_TEXT,
            "operation": {**MAYBE_TEXT, "description": "what git has begun and not ended: rebase, merge …"},
            "problem": {**MAYBE_TEXT, "description": "why git is not asked there: no tree, not ours"},
            "reason": MAYBE_TEXT,
            "has_commits": FLAG,
            "base_follows": MAYBE_TEXT,
            "base_behind": MAYBE_WHOLE,
            "at": NUMBER,
        }
    ),
    "type": ["object", "null"],
    "description": "null where it was not asked for or is not known",
}
USAGE = {
    **object_schema(
        {
            "input_tokens": MAYBE_WHOLE,
            "output_tokens": MAYBE_WHOLE,
            "cached_tokens": MAYBE_WHOLE,
            "cost": MAYBE_NUMBER,
        }
    ),
    "type": ["object", "null"],
    "description": "null where the runtime does not say",
}
RECORD = object_schema(
    {
        "id": TEXT,
        "type": {"type": "string", "enum": list(BUILDER_TYPES)},
        "branch": TEXT,
        "worktree": TEXT,
        "session": TEXT,
        "runtime": TEXT,
        "model": MAYBE_TEXT,
        "base": TEXT,
        "base_commit": TEXT,
        "role": MAYBE_TEXT,
        "task_text": MAYBE_TEXT,
        "protocol_name": MAYBE_TEXT,
        "protocol_args": {"type": ["object", "null"]},
        "spec": MAYBE_TEXT,
        "files": list_of(TEXT),
        "ports": list_of(WHOLE),
        "conversation_id": MAYBE_TEXT,
        "created_at": TEXT,
        "state": TEXT,
        "reason": MAYBE_TEXT,
    }
)
BUILDER = object_schema(
    {
        **RECORD["properties"],
        "title": {**TEXT, "description": "one line that tells what it is for"},
        "status": STATUS,
        "git": GIT,
        "usage": USAGE,
    }
)
EVENT = object_schema(
    {
        "at": NUMBER,
        "run": TEXT,
        "source": TEXT,
        "event": TEXT,
        "state": MAYBE_TEXT,
        "reason": MAYBE_TEXT,
        "detail": ANYTHING,
    }
)
COMMIT = object_schema({"sha": TEXT, "subject": TEXT})
EVIDENCE = object_schema(
    {
        "landed": {**FLAG, "description": "nothing would be lost: `prune` removes it as it is"},
        "summary": TEXT,
        "obstacles": list_of(object_schema({"what": TEXT, "hint": MAYBE_TEXT})),
        "changed": list_of(TEXT),
        "untracked": list_of(TEXT),
        "commits": list_of(COMMIT),
    }
)
LANDING = object_schema(
    {"work": TEXT, "into": TEXT, "commits": list_of(COMMIT), "left_behind": list_of(TEXT)}
)
SESSION = object_schema(
    {
        "id": TEXT,
        "butler": TEXT,
        "trigger_source": TEXT,
        "state": {"type": "string", "enum": list(SESSION_STATES)},
        "runtime": TEXT,
        "model": MAYBE_TEXT,
        "prompt": MAYBE_TEXT,
        "created_at": NUMBER,
        "started_at": MAYBE_NUMBER,
        "ended_at": MAYBE_NUMBER,
        "duration": MAYBE_NUMBER,
        "success": {"type": ["boolean", "null"]},
        "error": MAYBE_TEXT,
        "input_tokens": MAYBE_WHOLE,
        "output_tokens": MAYBE_WHOLE,
        "cost": MAYBE_NUMBER,
        "tool_calls": {"description": "how many; the calls themselves where one session is asked for"},
    }
)
SCHEDULE = object_schema(
    {
        "butler": TEXT,
        "name": TEXT,
        "cron": TEXT,
        "prompt": TEXT,
        "timezone": MAYBE_TEXT,
        "enabled": FLAG,
        "origin": TEXT,
        "next_due": MAYBE_NUMBER,
        "cwd": MAYBE_TEXT,
        "late": NUMBER,
        "until": MAYBE_TEXT,
    }
)
BUCKET = object_schema(
    {
        "at": {**NUMBER, "description": "where the bucket begins, in seconds since the epoch"},
        "sessions": WHOLE,
        "failed": WHOLE,
        "input_tokens": WHOLE,
        "output_tokens": WHOLE,
        "cost": NUMBER,
    }
)
ERROR: dict[str, Any] = object_schema(
    {
        "version": WHOLE,
        "error": object_schema(
            {"code": TEXT, "what": TEXT, "why": MAYBE_TEXT, "hint": MAYBE_TEXT, "evidence": list_of(TEXT)}
        ),
    }
)
