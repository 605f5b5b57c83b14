"""The text of a pull request about a builder's work, fenced so that a forge interprets nothing in it."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import suppress

from agent_farm.builders.proof import Proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.errors import DamagedFile
from agent_farm.farm.farm import Farm
from agent_farm.git.git_process import run_git
from agent_farm.git.remotes import find_base
from agent_farm.git.showing import start_of_work
from agent_farm.own_files import read_own

_MOST_TASK = 8000
_MOST_COMMITS = 100
_MOST_STAT = 12_000


def body_of(farm: Farm, record: BuilderRecord, tip: str, proof: Proof | None) -> str:
    start = start_of_work(
        farm.repository, record.base_commit, tip, find_base(farm.repository, record.base).refs
    )
    span = f"{start}..{tip}"
    most = f"--max-count={_MOST_COMMITS}"
    commits = run_git(farm.root, "log", "--no-decorate", most, "--format=%h %s", span, "--")
    stat = run_git(farm.root, "diff", "--stat=100", "--no-ext-diff", start, tip, "--")
    parts = [
        f"For {record.issue}\n" if record.issue else "",
        "## Task\n",
        _fenced(_task(farm, record)),
        "## Work\n",
        _fenced(f"{commits.rstrip()}\n\n{stat[:_MOST_STAT].rstrip()}"),
        "## Proof\n",
        _fenced("\n".join(_proof_lines(proof, tip))),
        f"Builder: `{record.id}` ({record.runtime})\n",
    ]
    return "\n".join(part for part in parts if part)


def _task(farm: Farm, record: BuilderRecord) -> str:
    """The whole task, from the file that keeps it."""
    if record.spec:
        return f"The spec {record.spec}"
    text = record.task_text or record.title
    if record.type == "task" and record.task_text and not record.issue:
        with suppress(OSError, DamagedFile):
            text = read_own(farm.run(record.id).prompt).decode("utf-8", "replace")
    return text[:_MOST_TASK]


def _proof_lines(proof: Proof | None, tip: str) -> Iterator[str]:
    if proof is None:
        yield "No check has judged it."
        return
    yield f"{proof.state}: {proof.reason}" if proof.reason else proof.state
    tree = f", tree {proof.tree[:12]}" if proof.tree else ""
    yield f"{proof.work[:12]} merged into {proof.into} at {proof.target[:12]}{tree}"
    if proof.work != tip:
        yield f"It does not cover {tip[:12]}, the commit of this pull request."
    for check in proof.checks:
        how = "passed" if check.passed else "failed"
        yield f"{check.name}: {check.command}: {how} in {check.seconds:.1f} s"
    for flag in proof.flags:
        yield f"flag {flag.kind}: {flag.told}"


def _fenced(text: str) -> str:
    """The text in a fence longer than any inside it, without characters that hide or reverse others."""
    plain = "".join(char for char in text if char in "\n\t" or char.isprintable())
    longest = max((len(run) for run in re.findall(r"`+", plain)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}text\n{plain.strip()}\n{fence}\n"
