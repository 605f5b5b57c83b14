"""`af runtimes`: what is installed, and whether it holds its lock."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING

import click

from agent_farm.cli.options import asker, complete_runtimes, json_option, yes_option
from agent_farm.cli.output import answer, answer_json, narrate, printable, style

if TYPE_CHECKING:
    from agent_farm.farm.farm import Farm
    from agent_farm.runtimes.survey import Survey


@click.group(invoke_without_command=True)
@json_option
@click.pass_context
def runtimes(ctx: click.Context, as_json: bool) -> None:
    """List the runtimes: version, whether each is usable, and why not.

    \b
      af runtimes               all of them, one line each
      af runtimes check codex   start it once against a server of its own, and say what it did
    """
    if ctx.invoked_subcommand is not None:
        return
    from agent_farm.runtimes.external_config import runtime_file_problem
    from agent_farm.runtimes.survey import survey_runtimes

    farm = _farm()
    if farm and (problem := runtime_file_problem(farm.root)):
        narrate(f"warning: {printable(f'{problem.what}: {problem.why}')}")
    found = survey_runtimes(os.environ, farm.root if farm else None, farm.settings if farm else None)
    if as_json:
        answer_json({"runtimes": [one.to_json() for one in found]})
        return
    width = max(len(one.name) for one in found)
    versions = max(len(one.version or "-") for one in found)
    for one in found:
        answer(f"{one.name.ljust(width)}  {(one.version or '-').ljust(versions)}  {_verdict(one)}")


@runtimes.command()
@click.argument("name", shell_complete=complete_runtimes)
@yes_option
@json_option
@click.pass_context
def check(ctx: click.Context, name: str, yes: bool, as_json: bool) -> None:
    """Start NAME headless for real, locked to a server made for this, and say what was seen.

    The model is asked to call the server's one tool, and one thing more in the same conversation, so this
    uses the account that the runtime is logged in with. Exit code 1 when a check fails.
    """
    from agent_farm.runtimes.check import check_runtime, require_runtime

    farm = _farm()
    adapter = require_runtime(name, farm.root if farm else None)
    if farm:
        _agree(farm, name, yes)
    if not as_json:
        narrate(f"starting {name}; this takes a few seconds")
    report = check_runtime(
        adapter,
        os.environ,
        declared=farm.settings.items("env.pass") if farm else (),
        command=_command(farm, name),
        model=farm.settings.runtime(name).model if farm else None,
    )
    if as_json:
        answer_json({"check": report.to_json()})
    else:
        for finding in report.findings:
            mark = style("ok", "green") if finding.good else style("no", "red")
            answer(f"{mark}  {finding.what}{f': {finding.detail}' if finding.detail else ''}")
    if not report.good:
        ctx.exit(1)


def _agree(farm: Farm, name: str, yes: bool) -> None:
    """To what of the repository takes part in this; its own program was agreed to by naming it."""
    from agent_farm.consent import require_consent
    from agent_farm.runtimes.origin import agree_by_name, repository_program

    farm.settings.require_good()
    agree_by_name(farm.root, name)
    program = repository_program(farm.root, name)
    wanted = farm.settings.requests([f"runtimes.{name}.command", "env.pass"])
    wanted += [program] if program else []
    require_consent(farm.root, wanted, yes=yes, ask=asker())


def _verdict(one: Survey) -> str:
    if one.problem:
        return f"{style('not usable', 'yellow')}: {one.problem}"
    return style("usable", "green")


def _farm() -> Farm | None:
    """Outside a repository the shipped runtimes can be looked at all the same."""
    from agent_farm.cli.options import current_farm
    from agent_farm.errors import AgentFarmError

    try:
        return current_farm(tolerant=True)
    except AgentFarmError:
        return None


def _command(farm: Farm | None, name: str) -> tuple[str, ...] | None:
    import shlex

    command = farm.settings.runtime(name).command if farm else None
    return tuple(shlex.split(command)) if command else None
