"""Certificates are tried before Ray gets them, and a head before it is joined. No Ray is needed."""

from __future__ import annotations

from datetime import timedelta
from pathlib import Path

import pytest
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    PrivateFormat,
    load_pem_private_key,
)

from agent_farm.disk import file_lock
from agent_farm.documents import store
from agent_farm.engine import nodes
from agent_farm.engine.certificates import require_head, require_tls
from agent_farm.engine.held import HeldEngine
from agent_farm.engine.nodes import start_head, start_member
from agent_farm.engine.ray_files import Node, node_file, node_lock
from agent_farm.errors import AgentFarmError, DamagedFile, Unreachable
from tests.engine.certificates import Authority, greeting

DAY = timedelta(days=1)
SECONDS = 60.0


@pytest.fixture
def ours() -> Authority:
    return Authority()


def test_good_ones_are_taken(ours: Authority, tmp_path: Path) -> None:
    place = ours.directory(tmp_path / "tls")
    assert require_tls(str(place), "127.0.0.1") == place
    assert require_tls(str(place)) == place


def test_what_cannot_be_used_says_why(
    ours: Authority, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(place: Path | str, why: str, host: str = "127.0.0.1") -> None:
        with pytest.raises(AgentFarmError) as error:
            require_tls(str(place), host)
        assert why in error.value.sentence

    good, other = ours.directory(tmp_path / "good"), Authority("other").directory(tmp_path / "other")
    monkeypatch.chdir(tmp_path)
    refused("good", "It is an absolute path with ca.crt, tls.crt, tls.key")
    refused(tmp_path / "nowhere", "It is an absolute path with")
    refused(ours.directory(tmp_path / "old", valid=-DAY), "certificate has expired")
    refused(good, "IP address mismatch, certificate is not valid for '10.0.0.5'", "10.0.0.5")
    refused(good, "Hostname mismatch, certificate is not valid for 'head'", "head")
    for name, why in (("ca.crt", "unable to get local issuer"), ("tls.key", "key values mismatch")):
        mixed = ours.directory(tmp_path / f"mixed-{name}")
        (mixed / name).write_bytes((other / name).read_bytes())
        refused(mixed, why)
    encrypted = ours.directory(tmp_path / "encrypted")
    key = load_pem_private_key((encrypted / "tls.key").read_bytes(), None)
    locked = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"x"))
    (encrypted / "tls.key").write_bytes(locked)
    refused(encrypted, "The key is encrypted")
    (good / "tls.crt").write_text("nothing\n")
    refused(good, "The certificates in")
    (other / "tls.key").chmod(0o644)
    with pytest.raises(DamagedFile):
        require_tls(str(other))


def test_a_head_is_joined_only_by_who_has_a_certificate_of_its_ca(ours: Authority, tmp_path: Path) -> None:
    def refused(address: str, tls: Path | None, why: str) -> None:
        with pytest.raises(Unreachable) as error:
            require_head(address, str(tls or ""), SECONDS)
        assert why in error.value.sentence

    good, same = ours.directory(tmp_path / "good"), ours.directory(tmp_path / "same")
    other = Authority("other").directory(tmp_path / "other")
    with greeting(good) as address:
        require_head(address, str(same), SECONDS)
        refused(address, None, "it needs --tls")
        refused(address, other, "Its certificate is refused here: ")
    with greeting(None) as address:
        require_head(address, "", SECONDS)
        refused(address, good, "It does not use TLS")
    with greeting(ours.directory(tmp_path / "old", valid=-DAY)) as address:
        refused(address, good, "Its certificate is refused here: certificate has expired")
    with greeting(ours.directory(tmp_path / "away", address="10.0.0.5")) as address:
        refused(address, good, "Its certificate is refused here: IP address mismatch")
    (good / "ca.crt").write_bytes((other / "ca.crt").read_bytes())  # it knows no CA of ours any more
    with greeting(good) as address:
        refused(address, same, f"It refuses the certificate in {same}.")


def test_nothing_is_started_with_certificates_that_cannot_be_used(
    ours: Authority, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(nodes, "require_ray", lambda: None)
    monkeypatch.setattr("agent_farm.engine.held.require_ray", lambda: None)
    monkeypatch.setattr("subprocess.Popen", lambda *given, **how: pytest.fail("something was started"))
    good, old = ours.directory(tmp_path / "good"), str(ours.directory(tmp_path / "old", valid=-DAY))
    with pytest.raises(AgentFarmError, match="cannot be used"):
        start_head("127.0.0.1", 1, name="home", slots=0, tls=old)
    with greeting(good) as address:
        for tls in (old, ""):
            with pytest.raises(AgentFarmError, match="cannot be used"):
                start_member(address, None, name="n1", slots=1, tls=tls)
            with pytest.raises(AgentFarmError, match="cannot be used"):
                HeldEngine(address, tls).capacity()


def test_the_name_is_compared_with_the_address_of_the_node_here(
    ours: Authority, tmp_path: Path, home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """With several interfaces it is not the one by which the head is reached; Ray's driver has the node's."""
    monkeypatch.setattr("agent_farm.engine.held.require_ray", lambda: None)
    monkeypatch.setattr(nodes, "require_ray", lambda: None)

    def popen(*given: object, **how: object) -> None:
        started.append(given)
        raise OSError("no more processes")

    def starts_a_holder(address: str) -> bool:
        started.clear()
        with pytest.raises(AgentFarmError):
            HeldEngine(address, tls).capacity()
        return bool(started)

    started = list[object]()
    monkeypatch.setattr("subprocess.Popen", popen)
    tls = str(ours.directory(tmp_path / "own", address="10.0.0.5"))
    with greeting(ours.directory(tmp_path / "head")) as address:
        with file_lock(node_lock()):
            store(node_file(), Node(1, address, "home", tls, "10.0.0.5"))
            assert starts_a_holder(address)
            store(node_file(), Node(1, address, "home", tls, "10.0.0.6"))
            assert not starts_a_holder(address)
        assert starts_a_holder(address), "nobody knows the address of a node that af has not started"
        with pytest.raises(AgentFarmError, match="cannot be used"):
            start_member(address, None, name="n1", slots=1, tls=tls)
