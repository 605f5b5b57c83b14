from __future__ import annotations

import os
import stat
from collections.abc import Mapping
from pathlib import Path

import pytest

from agent_farm.errors import AgentFarmError, DamagedFile, NotFound, UsageError
from agent_farm.sessions.credential_store import CredentialStore
from agent_farm.sessions.database import Database
from tests.sessions.loop import in_loop


def make_store(tmp_path: Path, environ: Mapping[str, str] | None = None) -> CredentialStore:
    return CredentialStore(Database(tmp_path / "butler.db"), environ or {}, tmp_path / "keys" / "key")


@in_loop
async def test_the_database_comes_first_and_the_environment_second(tmp_path: Path) -> None:
    store = make_store(tmp_path, {"A": "env", "B": "env"})
    store.set("A", "stored")
    assert await store.resolve("A") == "stored"
    assert await store.resolve("B") == "env"
    assert await store.resolve("C") is None
    store.unset("A")
    assert await store.resolve("A") == "env"


def test_values_are_sealed_on_disk_and_the_key_is_private(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.set("TOKEN", "very-secret-value")
    assert b"very-secret-value" not in b"".join(file.read_bytes() for file in tmp_path.glob("butler.db*"))
    assert stat.S_IMODE(os.stat(store.key_file).st_mode) == 0o600
    assert stat.S_IMODE(os.stat(tmp_path / "butler.db").st_mode) == 0o600
    assert list(store.key_file.parent.iterdir()) == [store.key_file]
    assert make_store(tmp_path).lookup("TOKEN") == "very-secret-value"


def test_a_key_that_others_can_read_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.set("TOKEN", "x")
    store.key_file.chmod(0o644)
    with pytest.raises(AgentFarmError, match="can be read by other users") as caught:
        store.lookup("TOKEN")
    assert f"chmod 600 {store.key_file}" in str(caught.value.why)


def test_a_lost_or_changed_key_is_named_and_never_replaced_silently(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.set("TOKEN", "x")
    text = store.key_file.read_bytes()
    store.key_file.unlink()
    with pytest.raises(DamagedFile, match="is gone"):
        store.lookup("TOKEN")
    assert not store.key_file.exists()
    store.set("OTHER", "y")
    with pytest.raises(DamagedFile, match="another key"):
        store.lookup("TOKEN")
    store.key_file.write_bytes(b"garbage")
    with pytest.raises(DamagedFile, match="contains no key"):
        store.lookup("TOKEN")
    store.key_file.write_bytes(text)
    assert store.lookup("TOKEN") == "x"


def test_names_are_listed_without_values(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    store.set("B_KEY", "1")
    store.set("A_KEY", "2")
    store.set("A_KEY", "3")
    assert list(store.names()) == ["A_KEY", "B_KEY"]
    assert store.lookup("A_KEY") == "3"


def test_what_cannot_be_a_credential_is_refused(tmp_path: Path) -> None:
    store = make_store(tmp_path)
    for name in ("", "A B", "A=B", "1A", "A\n"):
        with pytest.raises(UsageError, match="name of an environment variable"):
            store.set(name, "x")
    for value in ("", "a\0b"):
        with pytest.raises(UsageError):
            store.set("A", value)
    with pytest.raises(NotFound, match="No credential TOKN"):
        store.unset("TOKN")
