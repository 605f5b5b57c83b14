"""butler.db: SQLite in WAL mode, shared by any number of processes; numbered migrations make its tables."""

from __future__ import annotations

import os
import sqlite3
import threading
import time
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from functools import wraps
from pathlib import Path
from typing import Any, TypeVar, TypeVarTuple

from agent_farm.disk import make_directory
from agent_farm.errors import AgentFarmError, DamagedFile, LockTaken, UsageError
from agent_farm.launch import as_command
from agent_farm.own_files import require_own_file
from agent_farm.sessions.migrations import MIGRATIONS

BUSY_SECONDS = 15.0
_RETRY_SECONDS = 0.02
_THREADS = 2
# "malformed JSON" is about one value, not the file
_DAMAGE = ("not a database", "disk image is malformed", "malformed database schema")

T = TypeVar("T")
Ts = TypeVarTuple("Ts")
Row = sqlite3.Row


class Database:
    """One connection, used by one thread at a time; an event loop uses it through `run`."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._lock = threading.Lock()
        self._threads = ThreadPoolExecutor(_THREADS, thread_name_prefix="butler.db")
        self._connection = _open(path)

    def query(self, sql: str, parameters: Sequence[Any] = ()) -> list[Row]:
        with self._lock, self._named_errors():
            return self._connection.execute(sql, parameters).fetchall()

    @contextmanager
    def transaction(self) -> Iterator[sqlite3.Connection]:
        """Writes that happen together or not at all; other processes wait in the meantime."""
        with self._lock, self._named_errors():
            self._connection.execute("BEGIN IMMEDIATE")
            try:
                yield self._connection
                self._connection.execute("COMMIT")
            except BaseException:
                if self._connection.in_transaction:  # on a full disk SQLite has rolled back by itself
                    self._connection.execute("ROLLBACK")
                raise

    def write(self, sql: str, parameters: Sequence[Any] | Mapping[str, Any] = ()) -> int:
        """One statement, whole or not at all; returns how many rows it changed."""
        with self.transaction() as connection:
            return connection.execute(sql, parameters).rowcount

    async def run(self, function: Callable[..., T], *arguments: Any) -> T:
        """Runs `function` on a thread: neither a slow disk nor other processes delay the loop."""
        import asyncio

        return await asyncio.get_running_loop().run_in_executor(self._threads, function, *arguments)

    def close(self) -> None:
        self._threads.shutdown()
        with self._lock:
            self._connection.close()

    @contextmanager
    def _named_errors(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise _named(self.path, error) from error
        except (OverflowError, UnicodeEncodeError) as error:
            raise UsageError("That cannot be stored", why=str(error)) from error


def on_its_thread(
    function: Callable[[Database, *Ts], T],
) -> Callable[[Database, *Ts], Coroutine[Any, Any, T]]:
    """The function for use on an event loop, which neither a slow disk nor other processes then delay."""

    @wraps(function)
    async def run(database: Database, /, *arguments: *Ts) -> T:
        return await database.run(function, database, *arguments)

    return run


def database_problem(path: Path) -> AgentFarmError | None:
    """What would keep a server from starting; None also if there is no database yet."""
    if not os.path.lexists(path):
        return None
    try:
        database = Database(path)
    except AgentFarmError as error:
        return error
    try:
        (row,) = database.query("PRAGMA quick_check(1)")
    except AgentFarmError as error:
        return error
    finally:
        database.close()
    return None if row[0] == "ok" else DamagedFile(f"{path} is damaged", why=str(row[0]))


def _open(path: Path) -> sqlite3.Connection:
    make_directory(path.parent, alone=True)
    try:
        with suppress(FileExistsError):  # closing an existing file would release its locks
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600))
        require_own_file(path, secret=True)
        connection = sqlite3.connect(
            path, timeout=BUSY_SECONDS, isolation_level=None, check_same_thread=False
        )
    except (OSError, sqlite3.Error) as error:
        raise _named(path, error) from error
    try:
        connection.row_factory = sqlite3.Row
        _use_wal(connection)
        connection.execute("PRAGMA synchronous = NORMAL")
        _migrate(path, connection)
    except sqlite3.Error as error:
        connection.close()
        raise _named(path, error) from error
    except BaseException:
        connection.close()
        raise
    return connection


def _use_wal(connection: sqlite3.Connection) -> None:
    """SQLite does not wait when it turns a new file to WAL: two that open it at once have to retry."""
    deadline = time.monotonic() + BUSY_SECONDS
    while True:
        try:
            connection.execute("PRAGMA journal_mode = WAL")
            return
        except sqlite3.OperationalError as error:
            if "locked" not in str(error) or time.monotonic() > deadline:
                raise
        time.sleep(_RETRY_SECONDS)


def _version(connection: sqlite3.Connection) -> int:
    return int(connection.execute("PRAGMA user_version").fetchone()[0])


def _migrate(path: Path, connection: sqlite3.Connection) -> None:
    version = _version(connection)
    if version > len(MIGRATIONS):
        raise DamagedFile(
            f"{path} has version {version}; this af reads up to version {len(MIGRATIONS)}",
            why="A newer af wrote it.",
            hint="pip install --upgrade codev-agent-farm",
        )
    if version == len(MIGRATIONS):
        return
    connection.execute("BEGIN IMMEDIATE")
    try:
        for number in range(_version(connection), len(MIGRATIONS)):  # another process may have been first
            for statement in _statements(MIGRATIONS[number]):
                connection.execute(statement)
            connection.execute(f"PRAGMA user_version = {number + 1}")
        connection.execute("COMMIT")
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise


def _statements(script: str) -> Iterator[str]:
    """Unlike `executescript`, this does not commit the transaction that makes a migration atomic."""
    statement = ""
    for line in script.splitlines(keepends=True):
        statement += line
        if sqlite3.complete_statement(statement):
            yield statement
            statement = ""


def _named(path: Path, error: Exception) -> AgentFarmError:
    text = str(error)
    if "locked" in text or "busy" in text:
        return LockTaken(f"{path} is busy", why=f"Other processes held it for {BUSY_SECONDS:g} s.")
    if any(damage in text for damage in _DAMAGE):
        return DamagedFile(f"{path} is damaged", why=text, hint=f"mv {path} {path}.damaged && af doctor")
    if "is full" in text:
        return AgentFarmError(f"Cannot write {path}", why=text, hint=as_command("df", "-h", path.parent))
    return AgentFarmError(f"Cannot use {path}", why=text, hint=f"ls -ld {path.parent}")
