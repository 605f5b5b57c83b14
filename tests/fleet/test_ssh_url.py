"""What may be the address of a machine: nothing in it is an option, or a word more for a shell."""

from __future__ import annotations

import pytest

from agent_farm.errors import UsageError
from agent_farm.ssh.ssh_url import Address, parse_address


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("ssh://big", Address("big")),
        ("ssh://me@big.example:2222/srv/farms", Address("big.example", "me", 2222, "/srv/farms")),
        ("ssh://10.0.0.7/", Address("10.0.0.7")),
    ],
)
def test_an_address(text: str, address: Address) -> None:
    assert parse_address(text) == address
    assert parse_address(address.text) == address


@pytest.mark.parametrize(
    "text",
    [
        "", "big", "ssh://", "ssh://-oProxyCommand=x", "ssh://a@-x", "ssh://-a@x", "ssh://big\n",
        "ssh://b ig", "ssh://big;reboot", "ssh://$(reboot)", "ssh://big:0", "ssh://big:99999", "ssh://big/../x",
        "ssh://big/a b", "ssh://big/a'b", "ssh://big//x", "ssh://big/.hidden", "http://big",
        "ssh://" + "a" * 500,
        "ssh://big/\x1b[2J", "ssh://bíg",
    ],
)  # fmt: skip
def test_what_is_none(text: str) -> None:
    with pytest.raises(UsageError):
        parse_address(text)
