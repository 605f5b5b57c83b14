"""Whatever other model codex offers at a start is marked as seen, so that no dialog opens."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path

import pytest

from agent_farm.runtimes import get_adapter
from tests.runtimes.panes import pane_order

CATALOG = {"models": [{"slug": "old", "upgrade": {"model": "new"}}, {"slug": "new", "upgrade": None}]}


@pytest.fixture
def codex(tmp_path: Path) -> Path:
    """A program that prints its catalog, and leaves a mark each time."""
    program = tmp_path / "bin" / "codex"
    program.parent.mkdir()
    program.write_text(
        f"#!{sys.executable}\nimport sys\n"
        f"open({str(tmp_path / 'asked')!r}, 'a').write(' '.join(sys.argv[1:]))\n"
        f"print({json.dumps(CATALOG)!r})\n"
    )
    program.chmod(0o755)
    return tmp_path


def seen_offers(root: Path, repo: Path, **given: object) -> str:
    env = {"PATH": f"{root / 'bin'}:{os.environ['PATH']}", **given.pop("env", {"CODEX_API_KEY": "k"})}  # type: ignore[dict-item]
    launch = get_adapter("codex").interactive(
        pane_order(get_adapter("codex"), root, repo, prompt="hi", env=env, **given)
    )
    return next(word for word in launch.argv if word.startswith("notice.model_migrations="))


def test_the_programs_own_catalog_says_what_is_offered(codex: Path, repo: Path) -> None:
    assert seen_offers(codex, repo, model="old") == 'notice.model_migrations={"old"="new"}'
    assert (codex / "asked").read_text() == "debug models --bundled"


def test_what_a_login_has_fetched_since_counts_more(codex: Path, repo: Path, home: Path) -> None:
    newer = {
        "models": [{"slug": "old", "upgrade": {"model": "newest"}}, {"slug": "x", "upgrade": {"model": "y"}}]
    }
    (home / ".codex").mkdir()
    (home / ".codex" / "models_cache.json").write_text(json.dumps(newer))
    assert seen_offers(codex, repo, env={}) == 'notice.model_migrations={"old"="newest","x"="y"}'


def test_with_a_key_and_no_model_it_takes_the_newest_and_is_not_asked(codex: Path, repo: Path) -> None:
    assert seen_offers(codex, repo) == "notice.model_migrations={}"
    assert not (codex / "asked").exists()


@pytest.mark.parametrize("said", ["exit 3", "echo no json", 'echo \'{"models": [{"upgrade": 7}]}\''])
def test_a_catalog_that_cannot_be_read_keeps_nothing_from_starting(
    codex: Path, repo: Path, said: str
) -> None:
    (codex / "bin" / "codex").write_text(f"#!/bin/sh\n{said}\n")
    assert seen_offers(codex, repo, model="old") == "notice.model_migrations={}"
