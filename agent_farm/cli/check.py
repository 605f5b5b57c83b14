"""`af check`."""

from __future__ import annotations

from agent_farm.cli.derived import Way, command_of
from agent_farm.cli.output import answer, narrate, narrate_hint, printable
from agent_farm.launch import as_command
from agent_farm.operations.check import AllChecked, BuilderChecked


def _show_checked(part: BuilderChecked) -> None:
    proof = part.proof
    seconds = sum(check.seconds for check in proof.checks)
    took = f" in {seconds:.1f} s" if proof.checks else ""
    answer(printable(f"{part.id}  {part.state}{took}" + (f": {part.reason}" if part.reason else "")))
    for flag in proof.flags:
        answer(printable(f"  {flag.kind}  {flag.told}"))
    for output in part.output:
        narrate(printable("".join(f"  {line}\n" for line in output.text.splitlines()).rstrip("\n")))
    for check in proof.checks:
        if not check.passed:
            narrate(f"  log: {check.log}")


def _conclude_check(found: AllChecked) -> None:
    ready = [one.id for one in found.builders if one.state == "proven"]
    if ready:
        narrate_hint(as_command("af", "merge", *ready))


check = command_of(
    Way("check", _show_checked, _conclude_check),
    epilog="""\b
proven   committed, clean, no flags, all checks passed on the merged result
flagged  the same with flags, on the lines below: look at them in the diff
red      a check failed; conflicts, uncommitted, empty: what stands against it
Exit code 0 when all are proven.
""",
)
