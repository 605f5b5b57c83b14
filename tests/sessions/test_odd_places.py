"""Sessions asked for from a directory, or with variables, that are not UTF-8."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from agent_farm.server.variables import header_of, own_shell, told_shell
from tests.conftest import Af
from tests.sessions.records import open_sessions

ODD = os.fsdecode(b"caf\xe9")


def test_a_session_runs_from_there(farm: Path, af: Af) -> None:
    (farm / ODD).mkdir()
    ran = af("run", "--runtime", "demo", "x", cwd=farm / ODD, env={"AF_X": ODD, "LC_X": ODD})
    assert ran.returncode == 0, ran
    (record,) = open_sessions(farm).find()
    assert (record["state"], record["checkout"]) == ("completed", str(farm))


def test_a_request_carries_what_it_can(repo: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    inside = repo / ODD / "plain"
    inside.mkdir(parents=True)
    monkeypatch.chdir(inside)
    monkeypatch.setenv("AF_GOOD", "café")
    for name in ("AF_X", f"LC_{ODD}", "HOME", "AF_SESSION"):
        monkeypatch.setenv(name, ODD)
    shell = told_shell(header_of(own_shell(repo, {"XDG_X": ODD})))
    assert {name for name in shell.environ if name == "HOME" or name.startswith(("AF_", "LC_", "XDG_X"))} == {
        "AF_GOOD",
        "AF_SERVER",
    }
    assert (shell.directory, shell.session) == (str(repo), None)


def test_another_checkout_is_not_taken_for_the_one_around_it(
    repo: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (repo / ODD).mkdir()
    (repo / ODD / ".git").write_text("gitdir: elsewhere")
    monkeypatch.chdir(repo / ODD)
    assert own_shell(repo, {}).directory is None
