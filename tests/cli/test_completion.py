"""Completion in bash, zsh and fish knows what exists: builders, protocols, projects, runtimes, settings."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.conftest import Af
from tests.gitrepo import commit_files, git

AF = Path(sys.executable).parent / "af"
SHELLS = ("bash", "zsh", "fish")
EACH_SHELL = ("bash", *(pytest.param(shell, marks=pytest.mark.slow) for shell in ("zsh", "fish")))
TAKE_AN_ID = (
    "attach", "capture", "diff", "logs", "merge", "path", "prune", "resume", "send", "status", "stop", "wait",
)  # fmt: skip


@pytest.fixture
def farm(repo: Path) -> Path:
    commit_files(
        repo,
        {
            "codev/specs/0009-terminal-click.md": "",
            "codev/specs/0010-login.md": "",
            "codev/protocols/cleanup/protocol.md": "",
            "codev/protocols/experiment/protocol.md": "",
            "specs/login/spec.md": "",
            "specs/login/tasks.md": "- [x] T001 a\n- [ ] T002 b\n- [ ] T003 c\n",
        },
    )
    return repo


def completed(words: list[str], shell: str, cwd: Path) -> list[str]:
    """What the shell's completion function would be given for the last of `words`."""
    variables = {"_AF_COMPLETE": f"{shell}_complete", "COMP_WORDS": " ".join(words)}
    variables["COMP_CWORD"] = words[-1] if shell == "fish" else str(len(words) - 1)
    done = subprocess.run(
        [AF],
        cwd=cwd,
        env={**os.environ, **variables},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.stderr == ""
    lines = done.stdout.splitlines()
    if shell == "zsh":  # type, value and help, on a line each
        return lines[1::3]
    return [line.split(",", 1)[1].split("\t")[0] for line in lines if line]


CASES = [
    (["spawn", "--project", ""], {"0009", "0010"}),
    (["spawn", "-p", "001"], {"0010"}),
    (["spawn", "--protocol", "cl"], {"cleanup"}),
    (["config", "set", "spawn.permissions", ""], {"ask", "edit", "all"}),
    (["config", "set", "worktree.uncommitted", "t"], {"true"}),
    (["config", "unset", "runtimes.codex.m"], {"runtimes.codex.model"}),
    (["spawn", "--protocol", ""], {"cleanup", "experiment"}),
    (["spawn", "--runtime", "de"], {"demo"}),
    (["spawn", "--base", "ma"], {"main"}),
    (["spawn", "--branch", "ma"], {"main"}),
    (["spawn", "--permissions", ""], {"ask", "edit", "all"}),
    (["spawn", "--proj"], {"--project"}),
    (["sta"], {"status"}),
    (["completion", ""], {"bash", "zsh", "fish"}),
    (["spawn", "--spec", "specs/login", "--item", ""], {"all", "T002", "T003"}),
    (["spawn", "--files", "README.md,specs/login/s"], {"README.md,specs/login/spec.md"}),
    (["spawn", "--runtimes", "demo,cod"], {"demo,codex"}),
    (["spawn", "--role", "README"], {"README"}),  # the shell completes the rest of a file
    (["wait", "--for", "idle,wa"], {"idle,waiting"}),
    (["send", "x", "--keys", "E"], {"Enter", "Escape"}),
    (["stop", "@n"], {"@needs-you"}),
    (["schedule", "add", "n", "c", "p", "--timezone", "Europe/Ber"], {"Europe/Berlin"}),
    (["sessions", "show", "--source", "ti"], {"tick"}),
    (["runtimes", ""], {"list", "check"}),
    (["runtimes", "--"], {"--json", "--help"}),
    (["sessions", "st"], {"stop"}),
    (["butler", "state", "g"], {"get"}),
    (["config", "get", "merge."], {"merge.strategy", "merge.check"}),
]


@pytest.mark.parametrize("shell", EACH_SHELL)
@pytest.mark.parametrize(("words", "wanted"), CASES, ids=[" ".join(words) for words, _ in CASES])
def test_what_exists_is_offered(farm: Path, shell: str, words: list[str], wanted: set[str]) -> None:
    assert set(completed(["af", *words], shell, farm)) == wanted


@pytest.mark.parametrize("shell", EACH_SHELL)
@pytest.mark.parametrize("command", TAKE_AN_ID)
def test_builders_are_offered(farm: Path, af: Af, shell: str, command: str) -> None:
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    assert completed(["af", command, "task-"], shell, farm) == [id]


def test_several_to_wait_for_are_offered_one_after_the_other(farm: Path, af: Af) -> None:
    one, two = (
        af("spawn", "--runtime", "demo", "--name", name, "x").stdout.strip() for name in ("one", "two")
    )
    assert completed(["af", "spawn", "--after", f"{one},"], "bash", farm) == [f"{one},{two}"]


def test_names_of_schedules_credentials_and_worktrees_are_offered(farm: Path, af: Af, tmp_path: Path) -> None:
    assert af("schedule", "add", "digest", "0 8 * * 1", "Write").returncode == 0
    assert af("credentials", "set", "MY_KEY", input="secret").returncode == 0
    git(farm, "worktree", "add", "-q", "-b", "feat", str(tmp_path / "feat"))
    assert completed(["af", "schedule", "run", ""], "bash", farm) == ["digest"]
    assert completed(["af", "sessions", "show", "--source", "sch"], "bash", farm) == ["schedule:digest"]
    assert completed(["af", "credentials", "unset", ""], "bash", farm) == ["MY_KEY"]
    assert completed(["af", "import", ""], "bash", farm) == ["feat"]


def test_no_name_of_a_repository_runs_when_it_was_completed(farm: Path, af: Af, tmp_path: Path) -> None:
    """In a real bash, which puts what it is given on the command line as it is."""
    git(farm, "branch", "x$(touch${IFS}pwned)")
    commit_files(
        farm, {"codev/specs/0011-\x1b[31m.md": "", "a b;touch pwned": "", "a\nplain,$(touch pwned)": ""}
    )
    script = tmp_path / "script"
    script.write_text(af("completion", "bash").stdout)
    for words, offered in (
        ("--base x", ["'x$(touch${IFS}pwned)'"]),
        ("--files a", ["'a b;touch pwned'"]),
    ):
        option, word = words.split()
        ask = (
            f"source '{script}'; COMP_WORDS=(af spawn {words}); COMP_CWORD=3;"
            f" _af_completion af {word} {option};"
            ' printf "%s\n" "${COMPREPLY[@]}"; eval ": ${COMPREPLY[*]}"'
        )
        path = f"{AF.parent}:{os.environ['PATH']}"
        done = subprocess.run(
            ["bash", "--norc", "-c", ask], cwd=farm, env={**os.environ, "PATH": path}, capture_output=True,
            text=True, check=True, timeout=60,
        )  # fmt: skip
        assert done.stdout.splitlines() == offered
    assert not (farm / "pwned").exists()
    assert completed(["af", "spawn", "--base", "x"], "zsh", farm) == ["x$(touch${IFS}pwned)"]


@pytest.mark.parametrize("shell", SHELLS)
def test_af_cd_changes_the_directory_and_all_else_is_as_before(farm: Path, af: Af, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    function = af("completion", shell, "--cd").stdout
    typed = f"af cd {id} && pwd && af path {id}\naf cd nobody || echo no\naf cd --help"
    done = subprocess.run(
        [program, "-c", f"{function}\n{typed}"],
        cwd=farm, env={**os.environ, "PATH": f"{AF.parent}:{os.environ['PATH']}"}, capture_output=True,
        text=True, check=False, timeout=120,
    )  # fmt: skip
    place = str(farm / ".builders" / id)
    assert done.stdout.split()[:4] == [place, place, "no", "Usage:"], done


def test_runtimes_are_all_offered(farm: Path) -> None:
    offered = set(completed(["af", "spawn", "--runtime", ""], "bash", farm))
    assert offered >= {"claude-code", "codex", "gemini", "opencode", "copilot", "demo"}


@pytest.mark.parametrize("damage", ["no-repository", "damaged", "newer", "settings"])
def test_nothing_is_offered_and_nothing_said_where_nothing_can_be_read(
    farm: Path, tmp_path: Path, damage: str
) -> None:
    place = farm
    (farm / ".agent-farm").mkdir()
    if damage == "no-repository":
        place = tmp_path / "nowhere"
        place.mkdir()
    elif damage == "settings":
        (farm / "agent-farm.toml").write_text("[")
    else:
        content = "{" if damage == "damaged" else '{"version": 9, "builders": {}}'
        (farm / ".agent-farm/registry.json").write_text(content)
    assert completed(["af", "attach", ""], "bash", place) == []


@pytest.mark.parametrize("name", ["af", "agent-farm"])
def test_bash_completes_under_both_names(af: Af, farm: Path, tmp_path: Path, name: str) -> None:
    """In a real bash: the script is read, and its function asked as Tab asks it."""
    script = tmp_path / "script"
    script.write_text(af("completion", "bash").stdout)
    ask = (
        f"source {script}; COMP_WORDS=({name} sta); COMP_CWORD=1; "
        f'function=$(complete -p {name} | sed "s/.*-F \\([^ ]*\\).*/\\1/"); '
        f'"$function" {name} sta {name}; echo "${{COMPREPLY[*]}}"'
    )
    path = f"{Path(sys.executable).parent}:{os.environ['PATH']}"
    done = subprocess.run(
        ["bash", "-c", ask], cwd=farm, env={**os.environ, "PATH": path}, capture_output=True, text=True,
        check=False, timeout=60,
    )  # fmt: skip
    assert done.stdout.split() == ["status"], done


@pytest.mark.parametrize("shell", SHELLS)
def test_the_shell_takes_the_script(af: Af, tmp_path: Path, shell: str) -> None:
    program = shutil.which(shell)
    if program is None:
        pytest.skip(f"{shell} is not installed")
    script = tmp_path / "script"
    script.write_text(af("completion", shell).stdout)
    done = subprocess.run(
        [program, "-n", str(script)], capture_output=True, text=True, check=False, timeout=120
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_bash_completes_by_itself(farm: Path, af: Af, tmp_path: Path) -> None:
    """The whole way: the script is loaded, and the shell asks `af` on PATH."""
    id = af("spawn", "--runtime", "demo", "Fix").stdout.strip()
    script = tmp_path / "script"
    script.write_text(af("completion", "bash").stdout)
    ask = (
        f"source '{script}'; COMP_WORDS=(af stop task-); COMP_CWORD=2; _af_completion af task- stop;"
        ' printf "%s\\n" "${COMPREPLY[@]}"'
    )
    done = subprocess.run(
        ["bash", "--norc", "-c", ask],
        cwd=farm,
        env={**os.environ, "PATH": f"{AF.parent}:{os.environ['PATH']}"},
        capture_output=True,
        text=True,
        check=True,
        timeout=60,
    )
    assert done.stdout.split() == [id]


def test_an_unknown_shell_is_refused_with_those_that_are_known(af: Af) -> None:
    done = af("completion", "tcsh")
    assert done.returncode == 2
    for shell in SHELLS:
        assert shell in done.stderr
