"""`af tmux` and `af status --short`: what stands in a tmux.conf, and that no directory's name runs in it."""

from __future__ import annotations

import subprocess
from pathlib import Path

from tests.cli.test_attach import AF
from tests.conftest import Af
from tests.gitrepo import make_repo
from tests.waiting import wait_until


def test_short_is_one_line_and_nothing_where_there_is_no_builder(af: Af) -> None:
    assert af("status", "--short").stdout == ""
    id = af("spawn", "[[ask:May I?]]", "--runtime", "demo").stdout.strip()
    assert af("wait", id, "--timeout", "300").returncode == 0
    af("spawn", "--shell", "--runtime", "demo")
    assert af("status", "--short").stdout.startswith("1 needs you")
    assert af("status", "--short", "--json").returncode == 2


def test_the_lines_are_taken_and_run_nothing_of_a_directory_s_name(tmp_path: Path, af: Af) -> None:
    hostile = make_repo(tmp_path / "$(touch pwned) #(touch pwned)")
    program = tmp_path / "bin/af"
    program.parent.mkdir()
    program.write_text(f'#!/bin/sh\necho "$PWD" >> {tmp_path}/asked\nexec {AF} "$@"\n')
    program.chmod(0o755)
    conf = tmp_path / "tmux.conf"
    conf.write_text(af("tmux").stdout)
    start = [
        "tmux",
        "-L",
        "lines",
        "-f",
        str(conf),
        "new-session",
        "-d",
        "-s",
        "s",
        "sh",
    ]  # -c would be expanded
    path = f"{program.parent}:/usr/bin:/bin"
    subprocess.run(
        start, check=True, cwd=hostile, env={"PATH": path, "TMUX_TMPDIR": str(tmp_path), "TERM": "xterm"}
    )
    where = {"TMUX_TMPDIR": str(tmp_path), "PATH": path, "TERM": "xterm"}

    def shown(*words: str) -> str:
        asked = ["tmux", "-u", "-L", "lines", *words]  # else line breaks are shown as underscores
        return subprocess.run(asked, env=where, capture_output=True, text=True, check=False).stdout

    try:
        assert "display-popup" in shown("list-keys", "-T", "prefix", "A")
        line = shown("show-options", "-gv", "status-right").strip()
        wait_until(
            lambda: (
                shown("display-message", "-p", "-t", "s", line) is not None
                and (tmp_path / "asked").exists()
                and str(hostile) in (tmp_path / "asked").read_text().splitlines()
            ),
            what="tmux to run the segment",  # a pane that is just starting has the server's directory
        )
        evil = tmp_path / "evil/run.sh"
        evil.parent.mkdir()
        evil.write_text(f"#!/bin/sh\ntouch {tmp_path}/pwned\n")
        evil.chmod(0o755)
        lines = tmp_path / "evil\n." / "run.sh"  # as a second command: ./run.sh, where the first one has led
        lines.mkdir(parents=True)
        subprocess.run(
            ["tmux", "-L", "lines", "new-session", "-d", "-s", "e", "sh"], cwd=lines, env=where, check=True
        )
        wait_until(
            lambda: (
                shown("display-message", "-p", "-t", "e", f"{line} #(touch {tmp_path}/last)") is not None
                and (tmp_path / "last").exists()
            ),
            what="tmux to run what comes after the segment",
        )
        assert not list(tmp_path.rglob("pwned"))
    finally:
        shown("kill-server")
