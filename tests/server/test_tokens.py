from __future__ import annotations

import os
import stat
from pathlib import Path

from agent_farm.server.callers import Caller, Tokens
from agent_farm.server.tokens import builder_token_file, hash_token, mint_builder_token
from tests.server.serving import tools_of


def test_a_builders_token_names_that_builder_and_no_other(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path)
    first, second = mint_builder_token(tmp_path, "task-a"), mint_builder_token(tmp_path, "task-b")
    assert tokens.caller(first, "task-a") == Caller("builder", "task-a")
    assert tokens.caller(first, "task-b") is None
    assert tokens.caller(second, "task-a") is None
    assert tokens.caller(first, None) is None
    assert tokens.caller(first, "../task-a") is None
    assert tokens.caller("", "task-a") is None


def test_only_a_hash_is_kept_in_a_private_file(tmp_path: Path) -> None:
    token = mint_builder_token(tmp_path, "task-a")
    file = builder_token_file(tmp_path, "task-a")
    assert token not in file.read_text()
    assert stat.S_IMODE(os.stat(file).st_mode) == 0o600


def test_a_new_token_ends_the_old_one_and_a_moved_run_directory_ends_both(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path / "runs")
    old = mint_builder_token(tmp_path / "runs", "task-a")
    new = mint_builder_token(tmp_path / "runs", "task-a")
    assert tokens.caller(old, "task-a") is None
    assert tokens.caller(new, "task-a") is not None
    (tmp_path / "runs" / "task-a").rename(tmp_path / "trash")
    assert tokens.caller(new, "task-a") is None


def test_a_damaged_token_file_lets_nobody_in(tmp_path: Path) -> None:
    token = mint_builder_token(tmp_path, "task-a")
    for text in ("", "[]", "{}", '{"sha256": null}', '{"sha256": "é"}'):
        builder_token_file(tmp_path, "task-a").write_text(text)
        assert Tokens(tmp_path).caller(token, "task-a") is None


def test_the_architect_and_sessions(tmp_path: Path) -> None:
    tokens = Tokens(tmp_path, architect=hash_token("boss"))
    session = tokens.mint_for_session("s1", "mail")
    assert tokens.caller("boss", None) == Caller("architect", "architect")
    assert tokens.caller(session, "s1") == Caller("session", "s1", butler="mail")
    assert tokens.caller(session, "s2") is None
    tokens.revoke_session("s1")
    assert tokens.caller(session, "s1") is None


def test_each_kind_of_token_is_good_for_its_own_tools() -> None:
    assert "trigger" in tools_of("session")
    assert "trigger" not in tools_of("builder")
    assert tools_of("builder") >= {"report", "ask_architect", "state_get"}
    assert not tools_of("session") & {"ask_architect", "prune", "spawn", "credentials_list", "sessions_prune"}
    assert not tools_of("architect") & {"credentials_set", "sources_add", "butler_stop"}
    assert tools_of("architect") >= {"spawn", "status", "send", "wait", "diff", "trigger"}
