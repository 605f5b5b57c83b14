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
