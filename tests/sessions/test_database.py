from __future__ import annotations

import sqlite3
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, DamagedFile, UsageError
from agent_farm.sessions.database import Database
from agent_farm.sessions.migrations import MIGRATIONS
from agent_farm.sessions.state_store import StateStore

WRITER = """
import sys
from pathlib import Path
from agent_farm.sessions.database import Database
from agent_farm.sessions.state_store import StateStore
store = StateStore(Database(Path(sys.argv[1])), "b")
for number in range(50):
    store.set(f"{sys.argv[2]}-{number}", number)
"""


def test_several_processes_write_at_once_and_nothing_is_lost(tmp_path: Path) -> None:
    path = tmp_path / "butler.db"
    writers = [subprocess.Popen([sys.executable, "-c", WRITER, str(path), str(n)]) for n in range(6)]
    assert [writer.wait(60) for writer in writers] == [0] * 6
    assert len(StateStore(Database(path), "b").items()) == 300


def test_it_is_wal_and_at_the_newest_version(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    assert database.query("PRAGMA journal_mode")[0][0] == "wal"
    assert database.query("PRAGMA user_version")[0][0] == len(MIGRATIONS)


def test_a_server_that_starts_while_its_farm_is_moved_makes_none_where_it_was(tmp_path: Path) -> None:
    moved = tmp_path / "repository"
    with pytest.raises(AgentFarmError, match="Cannot write"):
        Database(moved / ".agent-farm/butler.db")
    assert not moved.exists()


def test_a_newer_file_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "butler.db"
    Database(path).close()
    with sqlite3.connect(path) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()
    with pytest.raises(DamagedFile, match=r"butler\.db has version 99"):
        Database(path)


def test_a_damaged_file_is_refused_by_name_and_left_alone(tmp_path: Path) -> None:
    path = tmp_path / "butler.db"
    path.write_bytes(b"this is not a database, and long enough to be looked at as one" * 20)
    path.chmod(0o600)
    before = path.read_bytes()
    with pytest.raises(DamagedFile, match=r"butler\.db is damaged"):
        Database(path)
    assert path.read_bytes() == before


def test_a_migration_that_fails_leaves_nothing_behind(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "butler.db"
    broken = (*MIGRATIONS, "CREATE TABLE half (a); CREATE TABLE half (a);")
    monkeypatch.setattr("agent_farm.sessions.database.MIGRATIONS", broken)
    with pytest.raises(AgentFarmError, match="Cannot use"):
        Database(path)
    monkeypatch.undo()
    database = Database(path)
    assert database.query("SELECT name FROM sqlite_master WHERE name = 'half'") == []


def test_a_transaction_that_fails_changes_nothing(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    store = StateStore(database, "b")
    store.set("a", 1)

    def fail_halfway() -> None:
        with database.transaction() as connection:
            connection.execute("DELETE FROM state")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        fail_halfway()
    assert store.get("a") == 1


def test_state_is_json_per_butler(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    mine, other = StateStore(database, "health"), StateStore(database, "general")
    mine.set("tasks", {"open": [1, 2]})
    mine.set("tasks", {"open": []})
    mine.set("ta%", "x")
    assert mine.get("tasks") == {"open": []}
    assert mine.get("nothing") is None
    assert mine.items("tas") == {"tasks": {"open": []}}
    assert list(mine.items("ta%")) == ["ta%"]
    assert other.items() == {}
    assert not other.delete("tasks")
    assert mine.delete("tasks")
    assert not mine.delete("tasks")
    with pytest.raises(UsageError):
        mine.set("", 1)


def test_a_second_connection_keeps_the_locks_of_the_first(tmp_path: Path) -> None:
    """Without them, another process that leaves takes itself for the last one and removes the journal."""
    path = tmp_path / "butler.db"
    first = StateStore(Database(path), "b")
    Database(path)
    subprocess.run([sys.executable, "-c", WRITER, str(path), "other"], check=True, timeout=120)
    first.set("mine", 1)
    reader = f"import sqlite3; print(*sqlite3.connect({str(path)!r}).execute('SELECT key FROM state'))"
    done = subprocess.run(
        [sys.executable, "-c", reader], capture_output=True, text=True, check=True, timeout=60
    )
    assert "mine" in done.stdout


def test_a_full_disk_is_named_and_the_database_works_once_there_is_room_again(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    store = StateStore(database, "b")
    store.set("kept", 1)
    pages = database.query("PRAGMA page_count")[0][0]
    database.query(f"PRAGMA max_page_count = {pages}")
    for _ in range(2):
        with pytest.raises(AgentFarmError) as error:
            store.set("large", "x" * 500_000)
        assert "full" in (error.value.why or "")
    database.query(f"PRAGMA max_page_count = {pages + 1000}")
    store.set("large", "x" * 500_000)
    assert set(store.items()) == {"kept", "large"}


def test_a_commit_that_fails_leaves_no_transaction_open(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    database.query("PRAGMA foreign_keys = ON")
    with database.transaction() as connection:
        connection.execute("CREATE TABLE parents (id INTEGER PRIMARY KEY)")
        connection.execute("CREATE TABLE children (parent REFERENCES parents DEFERRABLE INITIALLY DEFERRED)")
    with pytest.raises(AgentFarmError), database.transaction() as connection:
        connection.execute("INSERT INTO children VALUES (7)")
    StateStore(database, "b").set("key", 1)


def test_what_it_cannot_store_is_a_mistake_of_whoever_says_it(tmp_path: Path) -> None:
    store = StateStore(Database(tmp_path / "butler.db"), "b")
    with pytest.raises(UsageError, match="cannot be stored"):
        store.set("half a pair \ud800", 1)
    with pytest.raises(UsageError, match="cannot be stored"):
        store.database.query("SELECT ?", (1 << 64,))


def test_a_value_that_is_no_json_does_not_make_the_file_a_damaged_one(tmp_path: Path) -> None:
    database = Database(tmp_path / "butler.db")
    with pytest.raises(AgentFarmError, match="Cannot use") as error:
        database.query("SELECT json_array_length('[nonsense')")
    assert not isinstance(error.value, DamagedFile)


def test_a_page_that_is_overwritten_is_damage(tmp_path: Path) -> None:
    path = tmp_path / "butler.db"
    Database(path).close()
    content = path.read_bytes()
    path.write_bytes(content[:100] + b"\xff" * 3000 + content[3100:])
    with pytest.raises(DamagedFile, match="is damaged"):
        Database(path).query("SELECT * FROM sessions")
