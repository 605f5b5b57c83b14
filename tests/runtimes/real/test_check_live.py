"""`af runtimes` and `af runtimes check` with the real CLIs."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.fake_api import FakeApi
from tests.runtimes.real.clis import Cli
from tests.waiting import wait_until

pytestmark = pytest.mark.runtimes


def name_model(cli: Cli, repo: Path) -> None:
    """Without one opencode is used with a login or a key of its own alone."""
    if cli.model:
        (repo / "agent-farm.toml").write_text(f'[runtimes.{cli.name}]\nmodel = "{cli.model}"\n')


def test_a_check_finds_everything_in_order(cli: Cli, af: Af, api: FakeApi, repo: Path) -> None:
    name_model(cli, repo)
    done = af("runtimes", "check", cli.name, "--json", env=cli.environment(api), timeout=120)
    assert "warning" not in done.stderr
    check = json.loads(done.stdout)
    assert [finding["what"] for finding in check["findings"]] == [
        "usable",
        "ran",
        "reached its one MCP server",
        "sent the token and the session id",
        "called the tool",
        "resumed the conversation",
    ]
    assert check["good"], check
    assert done.returncode == 0


def test_a_refused_key_is_said_at_once(cli: Cli, af: Af, api: FakeApi, repo: Path) -> None:
    name_model(cli, repo)
    api.fail_with = 401
    begun = time.monotonic()
    done = af("runtimes", "check", cli.name, env=cli.environment(api), timeout=120)
    assert done.returncode == 1
    assert time.monotonic() - begun < 60
    assert "401" in next(line for line in done.stdout.splitlines() if line.startswith("no  ran: "))


def test_the_list_names_the_version_and_that_it_can_be_used(
    cli: Cli, af: Af, api: FakeApi, repo: Path
) -> None:
    """Asked again where a busy machine had no time for all of them at once."""
    name_model(cli, repo)

    def usable() -> dict[str, object] | None:
        listed = json.loads(af("runtimes", "--json", env=cli.environment(api)).stdout)["runtimes"]
        one = next(entry for entry in listed if entry["name"] == cli.name)
        assert one["usable"] or "does not end" in one["problem"], one
        return dict(one) if one["usable"] else None

    assert wait_until(usable, what="a version within the time it has")["version"]
