"""A run whose every read was refused has seen nothing of what it was asked about, whatever it says."""

from __future__ import annotations

import re
from collections.abc import Sequence

from agent_farm.runtimes.result import ToolCall

# what the CLIs call the tools that look at files
_TOOLS = re.compile(
    r"(?i)(read|view|grep|glob|ls|list|search|notebook)"
    r"|(read|read_many|search|list|view)_(files?|file_content|directory)|grep_search|list_dir"
)
_SHELLS = re.compile(r"(?i)bash|shell|(run_)?shell_command|local_shell|exec_command|command_execution")
_READERS = re.compile(
    r"\s*(cd\s[^&;|]*(&&|;)\s*)?(cat|grep|rg|ls|find|head|tail|sed|awk|wc|tree|less|stat|file)\b"
)
# in their words
_REFUSED = re.compile(
    r"(?i)haven't granted|requires? approval|was blocked|permission (to use .* )?(has been )?denied|denied by"
    r"|not in workspace|outside the allowed|a rule which prevents|permission settings|rejected permission"
)


def refused_reading(calls: Sequence[ToolCall]) -> str | None:
    """What the first refusal said, when there were reads and none of them was let through."""
    reads = [call for call in calls if _reads(call)]
    refusals = [call for call in reads if call.is_error and _REFUSED.search(call.result or "")]
    if not reads or len(refusals) < len(reads):
        return None
    return " ".join((refusals[0].result or "").split())[:300]


def _reads(call: ToolCall) -> bool:
    if _TOOLS.fullmatch(call.name):
        return True
    command = next((call.input[key] for key in ("command", "cmd", "input") if key in call.input), "")
    return bool(_SHELLS.fullmatch(call.name)) and bool(_READERS.match(str(command)))
