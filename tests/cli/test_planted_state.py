"""A cloned repository that brings `.agent-farm` or `.builders` along: refused by name, nothing happens."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from agent_farm.errors import DamagedFile, ForeignFile
from agent_farm.server.address import load_token, require_token, server_files
from agent_farm.server.callers import Tokens
from agent_farm.server.logins import Logins
from agent_farm.server.tokens import builder_token_file, mint_builder_token
from tests.builders.test_registry import a_record
from tests.cli.every_command import PRESENT, WORDS, assert_clear
from tests.conftest import Af
from tests.gitrepo import git, make_repo, write_files

# These look at nothing of a farm's state.
ELSEWHERE = {"init", "completion", "sources", "adapter", "ask", "chat"}


def clone_of(tmp_path: Path, files: dict[str, str]) -> Path:
    evil = make_repo(tmp_path / "evil")
    write_files(evil, files)
    git(evil, "add", "-fA")
    git(evil, "commit", "-qm", "nice project")
    git(tmp_path, "clone", "-q", os.fspath(evil), "clone")
    return tmp_path / "clone"


def planted_record(id: str) -> str:
    record = a_record("x", worktree="/nowhere", state="creating", new_branch=False).to_json()
    return json.dumps({"version": 1, "builders": {id: {**record, "id": id}}})


@pytest.mark.parametrize("name", [name for name in PRESENT if name not in ELSEWHERE])
def test_no_command_reads_it(af: Af, tmp_path: Path, name: str) -> None:
    thesis = tmp_path / "thesis"
    write_files(thesis, {"text": "ten years\n"})
    clone = clone_of(tmp_path, {".agent-farm/registry.json": planted_record(os.fspath(thesis))})
    done = af(*WORDS[name], cwd=clone)
    assert_clear(done)
    assert (thesis / "text").read_text() == "ten years\n"
    if name in ("status", "spawn", "doctor", "prune", "stop", "merge", "dash", "butler", "sessions", "run"):
        assert done.returncode == 1, done
        assert f"{clone}/.agent-farm is tracked by git" in done.stderr + done.stdout


@pytest.mark.parametrize("id", ["../../../thesis", "/home/me/thesis", "..", ".", "", "-rf", "a/b", "a\0b"])
def test_an_id_that_is_a_path_is_no_id(af: Af, repo: Path, tmp_path: Path, id: str) -> None:
    """Also where git does not track it: it came in an archive, say."""
    write_files(tmp_path / "thesis", {"text": "ten years\n"})
    write_files(repo, {".agent-farm/registry.json": planted_record(id)})
    for words in (("status",), ("doctor", "--fix"), ("prune",)):
        done = af(*words)
        assert_clear(done)
        assert (tmp_path / "thesis/text").exists()
        if words[0] == "status":
            assert "cannot be the id of a builder" in done.stderr


def test_what_it_tells_to_do_helps(af: Af, tmp_path: Path) -> None:
    clone = clone_of(tmp_path, {".agent-farm/registry.json": planted_record("x"), ".builders/x/y": ""})
    for place in (".agent-farm", ".builders"):
        done = af("status", cwd=clone)
        assert done.returncode == 1
        hint = done.stderr.splitlines()[-1]
        assert hint == f"hint: git -C {clone} rm -r -- {place}"
        git(clone, "rm", "-rq", "--", place)
    assert af("status", cwd=clone).returncode == 0


def test_a_planted_token_lets_nobody_in(repo: Path) -> None:
    """The second wall: a checkout makes files that others can read, and af never does."""
    files = server_files(repo)
    write_files(repo, {".agent-farm/architect.token": "a" * 64 + "\n"})
    files.token.chmod(0o644)
    with pytest.raises(ForeignFile, match=r"architect\.token"):
        require_token(files)
    with pytest.raises(ForeignFile):
        load_token(files.token)
    files.token.unlink()
    require_token(files)
    assert load_token(files.token) != "a" * 64
    files.token.unlink()
    files.token.symlink_to(repo / "README.md")
    with pytest.raises(ForeignFile, match="symbolic link"):
        require_token(files)


def test_a_planted_login_lets_nobody_in(repo: Path) -> None:
    file = repo / ".agent-farm/dashboard-logins.json"
    mine = Logins(file)
    login = mine.redeem(mine.issue_ticket(), 1)
    assert login is not None
    assert Logins(file).is_good(login, 1)
    file.chmod(0o644)
    assert not Logins(file).is_good(login, 1)


def test_a_planted_builder_token_lets_nobody_in(repo: Path) -> None:
    runs = repo / ".agent-farm/runs"
    token = mint_builder_token(runs, "task-1")
    tokens = Tokens(runs)
    assert tokens.caller(token, "task-1") is not None
    builder_token_file(runs, "task-1").chmod(0o644)
    assert tokens.caller(token, "task-1") is None


def test_the_address_of_a_server_names_no_file_to_read(repo: Path) -> None:
    """`server.json` is written for other programs; af itself knows where its token is."""
    from agent_farm.server.address import load_address

    files = server_files(repo)
    document = {"version": 1, "pid": 7, "port": 2, "token_file": "/etc/passwd", "started_at": 0}
    write_files(repo, {".agent-farm/server.json": json.dumps(document)})
    address = load_address(files)
    assert address is not None
    assert address.token_file == files.token


@pytest.mark.parametrize("pid", [-1, 0, 1, "2", 2.5, True])
def test_the_address_of_a_server_signals_nothing_but_a_process(repo: Path, pid: object) -> None:
    """-1 would be every process of the user."""
    from agent_farm.server.address import load_address

    document = {"version": 1, "pid": 7, "port": 2, "started_at": 0, "supervisor": pid}
    write_files(repo, {".agent-farm/server.json": json.dumps(document)})
    with pytest.raises(DamagedFile):
        load_address(server_files(repo))


def test_a_fifo_in_the_state_holds_up_nothing(af: Af, repo: Path) -> None:
    (repo / ".agent-farm").mkdir()
    os.mkfifo(repo / ".agent-farm/registry.json")
    done = af("status", timeout=120)
    assert_clear(done)
    assert done.returncode == 1
    assert "is not a regular file" in done.stderr
