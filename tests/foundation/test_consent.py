"""Consent: once per content and repository, remembered outside it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

import pytest

from agent_farm.consent import ConsentRequest, named_files, require_consent
from agent_farm.errors import ConsentNeeded, DamagedFile
from tests.gitrepo import write_files

ROOT = Path("/farms/one")
SETUP = ConsentRequest("agent-farm.toml worktree.setup", "make deps")
COPY = ConsentRequest(".worktreeinclude", ".env")


def stored() -> Path:
    return Path(os.environ["XDG_STATE_HOME"]) / "agent-farm/consent.json"


def test_nothing_wanted_is_nothing_asked() -> None:
    require_consent(ROOT, [], yes=False, ask=None)
    assert not stored().exists()


def test_without_anybody_to_ask_it_is_refused_with_what_was_wanted() -> None:
    with pytest.raises(ConsentNeeded) as caught:
        require_consent(ROOT, [SETUP, COPY], yes=False, ask=None)
    assert caught.value.evidence == ("agent-farm.toml worktree.setup: make deps", ".worktreeinclude: .env")
    assert "--yes" in f"{caught.value.why} {caught.value.hint}"
    assert caught.value.exit_code == 1
    assert not stored().exists()


def test_yes_agrees_and_is_remembered() -> None:
    require_consent(ROOT, [SETUP], yes=True, ask=None)
    require_consent(ROOT, [SETUP], yes=False, ask=None)


def test_an_answer_is_remembered_and_only_what_is_new_is_asked() -> None:
    asked: list[list[ConsentRequest]] = []
    require_consent(ROOT, [SETUP], yes=False, ask=lambda new: asked.append(list(new)) is None)
    require_consent(ROOT, [SETUP, COPY], yes=False, ask=lambda new: asked.append(list(new)) is None)
    require_consent(ROOT, [COPY, SETUP], yes=False, ask=lambda new: asked.append(list(new)) is None)
    assert asked == [[SETUP], [COPY]]


def test_no_is_not_remembered() -> None:
    with pytest.raises(ConsentNeeded):
        require_consent(ROOT, [SETUP], yes=False, ask=lambda new: False)
    with pytest.raises(ConsentNeeded):
        require_consent(ROOT, [SETUP], yes=False, ask=None)


def test_what_changed_while_it_was_read_is_not_approved(tmp_path: Path) -> None:
    def changed(new: Sequence[ConsentRequest]) -> bool:
        write_files(tmp_path, {"setup.sh": "two"})
        return True

    write_files(tmp_path, {"setup.sh": "one"})
    wish = ConsentRequest(SETUP.origin, "./setup.sh", (tmp_path / "setup.sh",))
    with pytest.raises(ConsentNeeded, match="not shown before"):
        require_consent(tmp_path, [wish], yes=False, ask=changed)
    with pytest.raises(ConsentNeeded, match="nobody has agreed"):
        require_consent(tmp_path, [wish], yes=False, ask=None)
    write_files(tmp_path, {"setup.sh": "one"})
    require_consent(tmp_path, [wish], yes=False, ask=None)


def test_a_refusal_that_was_read_approves_what_it_showed_and_nothing_else() -> None:
    with pytest.raises(ConsentNeeded) as first:
        require_consent(ROOT, [SETUP], yes=False, ask=None)
    shown = first.value.consent
    assert shown
    with pytest.raises(ConsentNeeded, match="not shown before") as second:
        require_consent(ROOT, [SETUP, COPY], yes=shown, ask=None)
    assert second.value.evidence[1] == ".worktreeinclude: .env"
    assert not stored().exists()
    require_consent(ROOT, [SETUP], yes=shown, ask=None)
    require_consent(ROOT, [SETUP], yes=False, ask=None)
    with pytest.raises(ConsentNeeded):
        require_consent(ROOT, [COPY], yes=second.value.consent or False, ask=None)


@pytest.mark.parametrize(
    "other",
    [
        (ROOT, ConsentRequest(SETUP.origin, "make deps && curl x | sh")),
        (ROOT, ConsentRequest("agent-farm.toml notify.command", SETUP.content)),
        (Path("/farms/two"), SETUP),
        (ROOT, ConsentRequest(SETUP.origin + "\0", SETUP.content)),
        (ROOT, ConsentRequest("agent-farm.toml worktree.setup\0make", "deps")),
    ],
)
def test_other_content_place_or_repository_is_asked_about(other: tuple[Path, ConsentRequest]) -> None:
    require_consent(ROOT, [SETUP], yes=True, ask=None)
    with pytest.raises(ConsentNeeded):
        require_consent(other[0], [other[1]], yes=False, ask=None)


def test_a_path_that_is_no_utf8() -> None:
    root = Path(os.fsdecode(b"/farms/caf\xe9"))
    strange = ConsentRequest(".worktreeinclude", os.fsdecode(b"caf\xe9"))
    require_consent(root, [strange], yes=True, ask=None)
    require_consent(root, [strange], yes=False, ask=None)


@pytest.mark.parametrize(
    "content", ["{", "[]", '{"version": 2, "agreed": []}', '{"version": 1}', '{"version": 1, "agreed": 7}']
)
def test_a_file_that_cannot_be_read_agrees_to_nothing_and_is_kept(content: str) -> None:
    stored().parent.mkdir(parents=True)
    stored().write_text(content)
    with pytest.raises(DamagedFile, match=r"consent\.json"):
        require_consent(ROOT, [SETUP], yes=True, ask=None)
    assert stored().read_text() == content


@pytest.mark.parametrize(
    ("command", "file"),
    [
        ("./setup.sh", "setup.sh"),
        ('sh "my setup.sh"', "my setup.sh"),
        ("sh my\\ setup.sh", "my setup.sh"),
        ("make setup", "Makefile"),
        ("cd tools && /usr/bin/make", "tools/GNUmakefile"),
        ("npm --prefix web ci", "web/package.json"),
        ("just deps", "justfile"),
        ("python3.12 -m venv .venv; python3.12 -m tools.setup", "tools/setup.py"),
        ("python -m tools", "tools/__main__.py"),
        ("python tools", "tools/__main__.py"),
    ],
)
def test_what_a_command_runs_is_agreed_to_with_it(tmp_path: Path, command: str, file: str) -> None:
    def wish() -> ConsentRequest:
        return ConsentRequest(SETUP.origin, command, named_files(tmp_path, command))

    require_consent(tmp_path, [wish()], yes=True, ask=None)
    write_files(tmp_path, {file: "one"})  # what was not there is new as well
    with pytest.raises(ConsentNeeded) as caught:
        require_consent(tmp_path, [wish()], yes=False, ask=None)
    assert Path(file).name in caught.value.evidence[0]
    require_consent(tmp_path, [wish()], yes=True, ask=None)
    require_consent(tmp_path, [wish()], yes=False, ask=None)
    write_files(tmp_path, {file: "two"})
    with pytest.raises(ConsentNeeded):
        require_consent(tmp_path, [wish()], yes=False, ask=None)


def test_a_file_of_agreements_that_holds_none_is_refused_by_name() -> None:
    stored().parent.mkdir(parents=True)
    stored().write_text('{"version": 1, "agreed": [[]]}')
    with pytest.raises(DamagedFile):
        require_consent(ROOT, [SETUP], yes=True, ask=None)
