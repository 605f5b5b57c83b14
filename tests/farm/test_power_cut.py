"""What a spawn has put on the disk when it says that a builder is there."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest


@pytest.mark.skipif(shutil.which("strace") is None, reason="strace is not installed")
def test_what_a_resume_reads_again_lasts(farm: Path, tmp_path: Path) -> None:
    """launch.json and the like do not have to: a resume writes them anew."""
    trace = tmp_path / "trace"
    words = ("strace", "-f", "--seccomp-bpf", "-b", "execve", "-y", "-e", "trace=fsync", "-o", str(trace))
    af = (sys.executable, "-P", "-m", "agent_farm", "spawn", "Fix it")
    subprocess.run([*words, *af], cwd=farm, check=True, capture_output=True, timeout=120)

    synced = set(re.findall(r"fsync\(\d+<.*/\.([\w.-]+?)\.[0-9a-f]{8}\.\d+\.tmp", trace.read_text()))
    assert synced >= {"registry.json", "ports.json", "prompt.md", "role.md", "record.json"}
