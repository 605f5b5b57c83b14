"""Documents that are generated match the code, and links between documents lead somewhere."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from agent_farm.cli.command_table import COMMANDS

ROOT = Path(__file__).parent.parent
DOCUMENTS = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md"), *(ROOT / "codev").rglob("*.md")])
MODULE = re.compile(r"`([\w/.-]+\.(?:py|js|css|sh))(?:::[^`]*)?`")
EXAMPLES = {"agent_farm/runtimes/acme.py", "tests/run.py"}  # of somebody else's repository
LINK = re.compile(r"\[[^\]]*\]\(([^)#\s]+)(?:#[^)]*)?\)")


def test_generated_documents_match_the_code() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "tools.docs", "--check"], cwd=ROOT, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, f"{done.stdout}{done.stderr}run make docs"


@pytest.mark.parametrize("document", DOCUMENTS, ids=lambda path: str(path.relative_to(ROOT)))
def test_links_lead_somewhere(document: Path) -> None:
    targets = [target for target in LINK.findall(document.read_text()) if "://" not in target]
    missing = [target for target in targets if not (document.parent / target).exists()]
    assert missing == []


def test_modules_that_documents_name_are_there() -> None:
    """By the end of their path: `operations/send.py`, or `send.py` where the room was named before it."""
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    files = [f"/{file}" for file in listed.splitlines()]
    missing = [
        f"{document.relative_to(ROOT)} names {name}"
        for document in DOCUMENTS
        for name in set(MODULE.findall(document.read_text())) - EXAMPLES
        if not any(file.endswith(f"/{name}") for file in files)
    ]
    assert missing == []


def test_the_readme_of_the_tests_names_each_command_and_files_that_exist() -> None:
    """A name without a directory lies beside the one named before it in its cell."""
    rows = [line for line in (ROOT / "tests/README.md").read_text().splitlines() if line.startswith("|")]
    missing = []
    for cell in (cell for row in rows for cell in row.split("|")):
        place = ROOT / "tests"
        for name in re.findall(r"`([\w/]+(?:\.py|/))`", cell):
            path = ROOT / "tests" / name if "/" in name else place / name
            place = path.parent
            missing += [] if path.exists() else [name]
    assert missing == []
    first = {name for row in rows for name in re.findall(r"`([\w-]+)`", row.split("|")[1])}
    assert set(COMMANDS) <= first
