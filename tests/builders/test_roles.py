"""Which file the system prompt comes from, by type."""

from __future__ import annotations

from pathlib import Path

import pytest

from agent_farm.builders.config import BuilderType
from agent_farm.builders.roles import PACKAGED_ROLE, choose_role, load_role
from agent_farm.errors import UsageError
from tests.gitrepo import write_files

BUILDER_ROLE = "codev/roles/builder.md"
PROTOCOL_ROLE = "codev/protocols/cleanup/role.md"


@pytest.mark.parametrize("type", ["spec", "task"])
def test_the_farms_builder_role(tmp_path: Path, type: BuilderType) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role", PROTOCOL_ROLE: "other"})
    assert choose_role(tmp_path, type) == tmp_path / BUILDER_ROLE


def test_the_protocols_own_role_wins(tmp_path: Path) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role", PROTOCOL_ROLE: "own"})
    assert choose_role(tmp_path, "protocol", protocol="cleanup") == tmp_path / PROTOCOL_ROLE


def test_a_protocol_without_a_role_uses_the_builders(tmp_path: Path) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role", PROTOCOL_ROLE: "other"})
    assert choose_role(tmp_path, "protocol", protocol="tick") == tmp_path / BUILDER_ROLE


@pytest.mark.parametrize("type", ["spec", "task", "protocol"])
def test_without_a_builder_role_the_packaged_one_is_used(tmp_path: Path, type: BuilderType) -> None:
    chosen = choose_role(tmp_path, type, protocol="tick" if type == "protocol" else None)
    assert chosen == PACKAGED_ROLE
    assert load_role(PACKAGED_ROLE).strip()


def test_a_shell_has_none(tmp_path: Path) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role"})
    assert choose_role(tmp_path, "shell") is None


@pytest.mark.parametrize("type", ["spec", "task", "protocol", "shell"])
def test_a_role_that_is_given_wins(tmp_path: Path, type: BuilderType) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role", "custom.md": "mine"})
    assert choose_role(tmp_path, type, given=tmp_path / "custom.md") == tmp_path / "custom.md"


@pytest.mark.parametrize("type", ["spec", "task", "protocol", "shell"])
def test_no_role(tmp_path: Path, type: BuilderType) -> None:
    write_files(tmp_path, {BUILDER_ROLE: "role"})
    assert choose_role(tmp_path, type, no_role=True) is None


def test_a_role_and_no_role_exclude_each_other(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="Flags are mutually exclusive: --role, --no-role"):
        choose_role(tmp_path, "task", given=tmp_path / "x", no_role=True)


@pytest.mark.parametrize("content", [None, b"\xff\xfe", b"a\0b"])
def test_a_role_that_cannot_be_read_is_a_usage_error(tmp_path: Path, content: bytes | None) -> None:
    role = tmp_path / "role.md"
    if content is not None:
        role.write_bytes(content)
    with pytest.raises(UsageError, match=r"role\.md"):
        load_role(role)


def test_a_directory_is_no_role(tmp_path: Path) -> None:
    with pytest.raises(UsageError):
        load_role(tmp_path)
