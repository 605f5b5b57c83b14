"""A machine that is asked for a builder whose id is taken there, by what it made or by an older one."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

from agent_farm.errors import AgentFarmError, UsageError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.trash import list_kept
from agent_farm.fleet.terms import Terms, edit_terms, hold, read_terms
from agent_farm.operations.for_home import copied_builders
from agent_farm.operations.for_home.placed_builders import Placement, placed
from agent_farm.operations.spawn_request import Spawn
from tests.conftest import Af
from tests.fleet.machines import Machines, Node
from tests.fleet.test_fleet import ok, spawned
from tests.gitrepo import commit_files, git

ORDER = msgspec.convert({"shell": True, "runtime": "demo"}, Spawn)


@pytest.fixture
def there(farm: Path) -> Farm:
    """The farm on the machine."""
    return open_farm(farm)


def asked(there: Farm, **changes: Any) -> Placement:
    head = git(there.root, "rev-parse", "HEAD")
    return replace(Placement("login", 1, "builder/login", head, None, head, ORDER), **changes)


def no_term(there: Farm) -> None:
    with edit_terms(there) as held:
        held[0] = Terms()


def state_of(there: Farm) -> object:
    worktree = there.paths.worktree("login")
    files = sorted(path.name for path in worktree.iterdir())
    return (
        there.records(),
        read_terms(there),
        git(worktree, "log", "-1"),
        git(worktree, "branch", "--show-current"),
        files,
    )


def test_the_same_call_twice_makes_it_once(there: Farm) -> None:
    first = placed(there.root, asked(there), []).builder
    assert first
    for _ in range(2):
        again = placed(there.root, asked(there), []).builder
        assert again
        assert again.created_at == first.created_at
        assert read_terms(there).held == {"login": 1}
        no_term(there)  # as a kill between making it and noting the term leaves it


def test_an_older_one_of_that_id_is_refused_and_not_touched(there: Farm) -> None:
    placed(there.root, asked(there), [])
    (there.paths.worktree("login") / "left.txt").write_text("not committed\n")
    later = commit_files(there.root, {"later.txt": "later\n"})
    base = git(there.root, "rev-parse", "builder/login")

    def refused(call: Placement) -> None:
        before = state_of(there)
        with pytest.raises(UsageError) as error:
            placed(there.root, call, [])
        assert error.value.what == f"There is another builder login in {there.root}"
        assert error.value.hint
        assert error.value.hint.endswith("af prune login")
        assert state_of(there) == before

    refused(asked(there, term=2, commit=base, base_commit=base))
    no_term(there)
    refused(asked(there, term=2, commit=later, base_commit=later))
    refused(asked(there, term=2, commit=base, base_commit=base, branch="builder/other"))
    assert placed(there.root, asked(there, term=2, commit=base, base_commit=base), []).builder


def test_one_that_could_not_be_noted_goes_into_the_trash(
    there: Farm, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Home takes it for one that was not made."""

    def full(*given: object) -> None:
        raise AgentFarmError("terms.json cannot be written", why="No space left on device")

    monkeypatch.setattr(copied_builders, "hold", full)
    with pytest.raises(AgentFarmError, match="cannot be written"):
        placed(there.root, asked(there), [])
    assert there.records() == {}
    assert [one.record.id for one in list_kept(there)] == ["login"]
    monkeypatch.setattr(copied_builders, "hold", hold)
    assert placed(there.root, asked(there), []).builder


@pytest.mark.slow
def test_a_machine_that_was_forgotten_and_added_again(
    af: Af, big: Node, machines: Machines, repo: Path
) -> None:
    machines("other")
    ok(af, "fleet", "add", "ssh://other")  # so that the farm keeps its name
    spawned(af, "--shell", "--name", "login")
    (worktree,) = (big.farms[0] / ".builders").iterdir()
    (worktree / "left.txt").write_text("not committed\n")
    ok(af, "fleet", "remove", "--forget", "big")
    ok(af, "fleet", "add", "ssh://big")
    done = af("spawn", "--on", "big", "--runtime", "demo", "--shell", "--name", "login")
    assert done.returncode == 2
    assert "big: There is another builder login in " in done.stderr
    assert "hint: ssh -t big 'cd " in done.stderr
    assert af("status").stdout == ""
    assert git(repo, "branch", "--list", "builder/*") == ""
    assert (worktree / "left.txt").read_text() == "not committed\n"
    assert "login" in big.run(str(big.program), "status")
