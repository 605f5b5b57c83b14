"""`af spawn` in its four modes: what each comes to, and what each refuses before anything exists."""

from __future__ import annotations

import hashlib
import json
import re
from pathlib import Path
from typing import Any

import pytest

from agent_farm.builders.roles import PACKAGED_ROLE
from tests.conftest import Af
from tests.farm import shims
from tests.farm.traces import traces
from tests.gitrepo import commit_files, git, write_files
from tests.waiting import wait_until

FARM = {
    "codev/specs/0009-terminal-click.md": "# Terminal click\n",
    "codev/specs/0010-login.md": "# Login\n",
    "codev/plans/0010-login.md": "# Plan\n",
    "codev/protocols/cleanup/protocol.md": "# Cleanup\n",
    "codev/protocols/experiment/protocol.md": "# Experiment\n",
    "codev/protocols/experiment/role.md": "You experiment.\n",
    "codev/protocols/pir/protocol.md": "# PIR\n",
    "codev/protocols/pir/protocol.json": '{"input": {"type": "github-issue", "required": true}}',
    "codev/protocols/greedy/protocol.md": "# Greedy\n",
    "codev/protocols/greedy/builder-prompt.md": "{{> ../../specs/0010-login.md}}\n",
    "codev/protocols/spir/protocol.md": "# SPIR\n{{> protocols/spir/protocol.json}}\n",
    "codev/protocols/spir/protocol.json": '{"input": {"type": "spec", "required": false}}',
    "codev/protocols/spir/builder-prompt.md": """\
# {{protocol_name}} ({{mode}})

You are implementing {{input_description}}.
{{#if mode_strict}}
porch
{{/if}}

{{#if spec}}
Read `{{spec.path}}`.
{{/if}}
{{#if plan}}
Follow `{{plan.path}}`.
{{/if}}

{{> protocols/spir/notes.md}}
{{protocol_reference}}
""",
    "codev/protocols/spir/notes.md": "Notes for {{project_id}}.",
    "codev/protocols/spike/protocol.md": "# Spike\n",
    "codev/protocols/spike/protocol.json": """{
        "alias": "poc", "input": {"type": "task", "required": true}, "signals": {"BLOCKED": {}},
        "phases": [{"id": "look", "name": "Look"}, {"id": "write", "checks": {"build": "make"}}]}""",
    "codev/protocols/spike/builder-prompt.md": """\
{{#if task}}Question: {{task_text}}{{/if}} `porch next {{project_id}}`""",
    "codev/roles/builder.md": "You build.\n",
    "src/auth.py": "",
    "src/login.py": "",
}


@pytest.fixture
def farm(repo: Path) -> Path:
    commit_files(repo, FARM)
    return repo


def spawn(af: Af, *args: str, **more: Any) -> dict[str, Any]:
    done = af("spawn", "--runtime", "demo", "--json", *args, **more)
    assert done.returncode == 0, done.stdout + done.stderr
    document = json.loads(done.stdout)
    assert document["version"] == 1
    builder: dict[str, Any] = document["builder"]
    return builder


def prompt_of(builder: dict[str, Any]) -> str:
    return Path(builder["prompt_file"]).read_text()


def assert_made(farm: Path, builder: dict[str, Any]) -> None:
    """Worktree, branch and session of its own, with a clean tree."""
    id = builder["id"]
    worktree = Path(builder["worktree"])
    assert worktree == farm / ".builders" / id
    assert git(worktree, "rev-parse", "--abbrev-ref", "HEAD") == builder["branch"]
    assert builder["session"] in traces(farm).sessions
    assert builder["base_commit"] == git(farm, "rev-parse", "HEAD")
    assert builder["base"] == "main"
    assert (farm / ".agent-farm/runs" / id).stat().st_mode & 0o777 == 0o700


def test_a_task(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix the bug\n-- please")
    start = hashlib.sha256(b"Fix the bug\n-- please").hexdigest()[:4]
    assert re.fullmatch(f"task-{start}-[a-z0-9]{{4}}", builder["id"])
    assert builder["type"] == "task"
    assert builder["branch"] == f"builder/{builder['id']}"
    assert prompt_of(builder) == builder["task_text"] == "Fix the bug\n-- please"
    assert builder["role"] == str(farm / "codev/roles/builder.md")
    assert_made(farm, builder)


def test_a_task_by_its_flag(farm: Path, af: Af) -> None:
    assert prompt_of(spawn(af, "--task", "Refactor")) == "Refactor"


def test_a_task_with_files(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix", "--files", "src/auth.py, src/login.py")
    assert prompt_of(builder) == "Fix\n\nRelevant files: src/auth.py, src/login.py"
    assert builder["files"] == ["src/auth.py", "src/login.py"]
    assert builder["task_text"] == "Fix"


def test_a_long_task_is_kept_whole_in_its_file(farm: Path, af: Af) -> None:
    builder = spawn(af, "x" * 700)
    assert builder["task_text"] == "x" * 500
    assert prompt_of(builder) == "x" * 700


@pytest.mark.parametrize("project", ["0009", "9"])
def test_a_spec(farm: Path, af: Af, project: str) -> None:
    builder = spawn(af, "-p", project)
    assert (builder["type"], builder["id"]) == ("spec", "0009")
    assert builder["branch"] == "builder/0009-terminal-click"
    assert builder["spec"] == "codev/specs/0009-terminal-click.md"
    assert prompt_of(builder) == "Implement the feature specified in codev/specs/0009-terminal-click.md."
    assert builder["role"] == str(farm / "codev/roles/builder.md")
    assert_made(farm, builder)


def test_a_spec_with_a_plan(farm: Path, af: Af) -> None:
    assert prompt_of(spawn(af, "--project", "10")) == (
        "Implement the feature specified in codev/specs/0010-login.md."
        " Follow the plan in codev/plans/0010-login.md."
    )


def test_a_protocol(farm: Path, af: Af) -> None:
    builder = spawn(af, "--protocol", "cleanup")
    found = re.fullmatch(r"cleanup-(\d{10})", builder["id"])
    assert found
    assert builder["branch"] == f"builder/protocol-cleanup-{found[1]}"
    assert (builder["type"], builder["protocol_name"]) == ("protocol", "cleanup")
    assert prompt_of(builder) == (
        "You are running the cleanup protocol.\n\nStart by reading codev/protocols/cleanup/protocol.md"
    )
    assert builder["role"] == str(farm / "codev/roles/builder.md")
    assert_made(farm, builder)


def test_a_protocol_with_arguments_and_a_role_of_its_own(farm: Path, af: Af) -> None:
    builder = spawn(af, "--protocol", "experiment", "--args", '{"hypothesis": "$(touch x)"}')
    assert '```json\n{\n  "hypothesis": "$(touch x)"\n}\n```' in prompt_of(builder)
    assert builder["protocol_args"] == {"hypothesis": "$(touch x)"}
    assert builder["role"] == str(farm / "codev/protocols/experiment/role.md")
    assert (farm / ".agent-farm/runs" / builder["id"] / "role.md").read_text() == "You experiment.\n"


def test_a_spec_with_a_protocol(farm: Path, af: Af) -> None:
    """The protocol's own template, filled in; its files are its folder's."""
    builder = spawn(af, "-p", "10", "--protocol", "SPIR")
    assert (builder["type"], builder["id"], builder["protocol_name"]) == ("spec", "0010", "spir")
    assert builder["branch"] == "builder/0010-login"
    assert prompt_of(builder) == (
        "# SPIR (soft)\n\n"
        "You are implementing the feature specified in codev/specs/0010-login.md.\n\n"
        "Read `codev/specs/0010-login.md`.\n\n\n"
        "Follow `codev/plans/0010-login.md`.\n\n"
        "Notes for 0010.\n"
        '# SPIR\n{"input": {"type": "spec", "required": false}}'
    ).replace("\n\n\n", "\n\n")
    assert builder["title"] == "spir: 0010-login"
    assert_made(farm, builder)


def test_a_spec_with_a_protocol_that_has_no_template(farm: Path, af: Af) -> None:
    builder = spawn(af, "-p", "9", "--protocol", "cleanup", "--args", '{"depth": 2}')
    assert prompt_of(builder) == (
        "You are running the cleanup protocol.\n\n"
        "Implement the feature specified in codev/specs/0009-terminal-click.md.\n\n"
        'Protocol arguments:\n```json\n{\n  "depth": 2\n}\n```\n\n'
        "Start by reading codev/protocols/cleanup/protocol.md"
    )


def test_a_protocol_by_its_alias_with_a_task_and_phases(farm: Path, af: Af) -> None:
    done = af("spawn", "--runtime", "demo", "--json", "--protocol", "POC", "--args", '{"task": "Redis?"}')
    builder = json.loads(done.stdout)["builder"]
    assert (builder["protocol_name"], builder["phases"], builder["phase"]) == (
        "spike",
        ["look", "write"],
        None,
    )
    assert prompt_of(builder) == (
        "Question: Redis? `porch next $AF_BUILDER_ID`\n\n"
        "The protocol itself is in codev/protocols/spike/protocol.md\n\n"
        "Its phases: look, write. As you begin one, call the tool `report` with its name as `phase`."
    )
    assert "the protocol spike needs porch, not installed here" in done.stderr


def test_a_name_is_the_id_and_the_branch(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix", "--name", "login-fix")
    assert (builder["id"], builder["branch"]) == ("login-fix", "builder/login-fix")
    taken = af("spawn", "--runtime", "demo", "Fix more", "--name", "login-fix")
    assert taken.returncode == 2
    assert "The name login-fix is taken" in taken.stderr


def test_ids_of_words(farm: Path, af: Af) -> None:
    assert af("config", "set", "spawn.names", "words").returncode == 0
    assert re.fullmatch(r"fix-login-redirect-[a-z0-9]{4}", spawn(af, "Fix the login redirect!")["id"])
    assert re.fullmatch(r"task-[0-9a-f]{4}-[a-z0-9]{4}", spawn(af, "修复登录")["id"])


def test_a_shell(farm: Path, af: Af) -> None:
    builder = spawn(af, "--shell")
    assert re.fullmatch(r"shell-\d{10}-[a-z0-9]{4}", builder["id"])
    assert builder["branch"] == f"builder/{builder['id']}"
    assert (builder["type"], builder["prompt_file"], builder["role"]) == ("shell", None, None)
    assert_made(farm, builder)


def test_several_shells_take_one_tmux_call_each(farm: Path, af: Af, tmp_path: Path) -> None:
    place = tmp_path / "counting"
    env = shims.make(place, "tmux", 0, ":")
    done = af("spawn", "--shell", "--runtime", "demo", "-n", "3", env=env)
    assert len(set(done.stdout.split())) == 3, done.stderr
    asked = " ".join(shims.calls(place, "tmux"))
    assert (asked.count("new-session"), len(shims.calls(place, "tmux"))) == (3, 3)


def test_a_shell_with_a_role(farm: Path, af: Af, tmp_path: Path) -> None:
    (tmp_path / "custom.md").write_text("You are custom.\n")
    builder = spawn(af, "--shell", "--role", str(tmp_path / "custom.md"))
    assert builder["role"] == str(tmp_path / "custom.md")
    assert (farm / ".agent-farm/runs" / builder["id"] / "role.md").read_text() == "You are custom.\n"


def test_the_role_reaches_the_runtime(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix")
    wait_until(lambda: "role: 11 bytes, You build." in af("capture", builder["id"]).stdout, what="its role")


def test_no_role(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix", "--no-role")
    assert builder["role"] is None
    assert not (farm / ".agent-farm/runs" / builder["id"] / "role.md").exists()


def test_a_role_that_is_not_committed_is_used_all_the_same(farm: Path, af: Af) -> None:
    """Roles are the architect's: they are read where the architect is."""
    write_files(farm, {"codev/roles/builder.md": "You build better.\n"})
    builder = spawn(af, "Fix")
    assert (farm / ".agent-farm/runs" / builder["id"] / "role.md").read_text() == "You build better.\n"


def test_without_a_role_of_the_farm_the_packaged_one_is_used(repo: Path, af: Af) -> None:
    assert spawn(af, "Fix")["role"] == str(PACKAGED_ROLE)


def test_the_same_text_twice_gives_two_builders(farm: Path, af: Af) -> None:
    one, two = spawn(af, "Fix"), spawn(af, "Fix")
    assert one["id"] != two["id"]
    assert set(one["ports"]).isdisjoint(two["ports"])


def test_the_answer_without_json_is_the_id_alone(farm: Path, af: Af) -> None:
    done = af("spawn", "--runtime", "demo", "Fix")
    assert re.fullmatch(r"task-[0-9a-f]{4}-[a-z0-9]{4}\n", done.stdout)
    assert f"hint: af attach {done.stdout.strip()}" in done.stderr


def began_at(builder: dict[str, Any]) -> str:
    """Its agent may have committed since."""
    return git(Path(builder["worktree"]), "reflog", "--format=%H").splitlines()[-1]


def test_an_earlier_base(farm: Path, af: Af) -> None:
    first = git(farm, "rev-parse", "HEAD~1")
    builder = spawn(af, "Fix", "--base", "HEAD~1")
    assert (builder["base"], builder["base_commit"]) == ("HEAD~1", first)
    assert began_at(builder) == first


def test_an_existing_branch(farm: Path, af: Af) -> None:
    git(farm, "switch", "-qc", "feature")
    tip = commit_files(farm, {"feature.txt": "begun\n"})
    git(farm, "switch", "-q", "main")
    builder = spawn(af, "Go on", "--branch", "feature")
    assert builder["branch"] == "feature"
    assert began_at(builder) == tip
    assert builder["base_commit"] == git(farm, "rev-parse", "main")


def test_a_spec_whose_branch_exists_goes_on_with_it_and_says_so(farm: Path, af: Af) -> None:
    git(farm, "branch", "builder/0009-terminal-click")
    done = af("spawn", "--runtime", "demo", "-p", "9")
    assert done.returncode == 0
    assert "builder/0009-terminal-click already exists; the builder continues it" in done.stderr


def test_a_subdirectory_is_where_the_builder_starts(farm: Path, af: Af) -> None:
    builder = spawn(af, "Fix", "--files", "auth.py", cwd=farm / "src")
    assert builder["subdirectory"] == "src"
    processes = farm / ".agent-farm/runs" / builder["id"] / "processes.json"
    wait_until(processes.exists, what="the runtime")
    pid = json.loads(processes.read_text())["runtime"]
    wait_until(
        lambda: (Path("/proc") / str(pid) / "cwd").resolve() == Path(builder["worktree"]) / "src",
        what="its working directory",
    )


def test_a_subdirectory_that_is_not_committed_falls_back_to_the_top(farm: Path, af: Af) -> None:
    (farm / "scratch").mkdir()
    assert spawn(af, "Fix", cwd=farm / "scratch")["subdirectory"] == ""


def test_from_a_linked_worktree_state_and_builders_are_the_main_ones(
    farm: Path, af: Af, tmp_path: Path
) -> None:
    git(farm, "worktree", "add", "-q", "-b", "side", str(tmp_path / "side"))
    tip = commit_files(tmp_path / "side", {"side.txt": "x\n"})
    builder = spawn(af, "Fix", "--files", "side.txt", cwd=tmp_path / "side")
    assert Path(builder["worktree"]).parent == farm / ".builders"
    assert (builder["base"], builder["base_commit"]) == ("side", tip)
    assert not (tmp_path / "side/.agent-farm").exists()
    assert builder["id"] in af("status", cwd=farm).stdout


def test_a_builder_can_spawn_a_builder(farm: Path, af: Af) -> None:
    first = spawn(af, "Fix")
    second = spawn(af, "Help", cwd=Path(first["worktree"]))
    assert second["base"] == first["branch"]
    assert Path(second["worktree"]).parent == farm / ".builders"


def test_a_detached_head_is_a_base(farm: Path, af: Af) -> None:
    git(farm, "switch", "-q", "--detach")
    commit = git(farm, "rev-parse", "HEAD")
    builder = spawn(af, "Fix")
    assert builder["base"] == builder["base_commit"] == commit


def test_nothing_is_written_into_worktree_or_checkout(farm: Path, af: Af) -> None:
    builder = spawn(af, "directive-free shell", "--permissions", "ask")
    assert git(farm, "status", "--porcelain", "--ignored=no") == ""
    assert git(Path(builder["worktree"]), "status", "--porcelain", "--ignored") == ""


# What is refused


REFUSED: list[tuple[list[str], int, list[str]]] = [
    ([], 2, ["Nothing to spawn", "af spawn --project 0009", "af spawn --shell", "--protocol", "--files"]),
    (["-p", "9", "text"], 2, ["Cannot combine --project with task text"]),
    (["-p", "9", "--task", "x"], 2, ["Cannot combine --project with task text"]),
    (["--protocol", "cleanup", "text"], 2, ["Cannot combine task text with --protocol"]),
    (["-p", "9", "--shell"], 2, ["Flags are mutually exclusive", "--project", "--shell"]),
    (["--protocol", "cleanup", "--shell"], 2, ["Flags are mutually exclusive", "--protocol", "--shell"]),
    (["-p", "9", "--issue", "1"], 2, ["Flags are mutually exclusive", "--project", "--issue"]),
    (["42"], 2, ["42 alone is not a task", "af spawn --issue 42", "af spawn --project 42"]),
    (["0009-terminal-click"], 2, ["It is the name of a spec", "af spawn --project 0009-terminal-click"]),
    (["text", "--name", "../x"], 2, ["cannot be the name of a builder", "letters, digits"]),
    (["text", "--name", "42"], 2, ["cannot be the name of a builder"]),
    (["--issue", "$(touch x)"], 2, ["is not an issue", "af spawn --issue 42"]),
    (["--protocol", "pir"], 2, ["The protocol pir requires an issue", "af spawn --issue 42 --protocol pir"]),
    (["--protocol", "spike"], 2, ["The protocol spike requires a task", '--args \'{"task": "…"}\'']),
    (["--protocol", "greedy"], 2, ["includes '../../specs/0010-login.md'", "its own folder"]),
    (["--shell", "text"], 2, ["Flags are mutually exclusive", "--shell"]),
    (["text", "--task", "text"], 2, ["Give the task once"]),
    (["text", "--task-file", "README.md"], 2, ["Give the task once"]),
    (["--task", "text", "--task-file", "README.md"], 2, ["Give the task once"]),
    (["--shell", "--files", "src/auth.py"], 2, ["--files requires a task"]),
    (["text", "--args", "{}"], 2, ["--args requires --protocol"]),
    (["--protocol", "cleanup", "--args", '{"a"'], 2, ["--args is not valid JSON", "line 1, column 5"]),
    (["--protocol", "cleanup", "--args", "[]"], 2, ["--args must be a JSON object"]),
    ([""], 2, ["The task text is empty"]),
    (["   "], 2, ["The task text is empty"]),
    (["one", "two"], 2, ["two"]),
    (["--nonsense"], 2, ["--nonsense"]),
    (["text", "--permissions", "root"], 2, ["ask", "edit", "all"]),
    (["text", "--branch", "b", "--base", "main"], 2, ["Flags are mutually exclusive: --branch, --base"]),
    (["text", "--role", "x.md", "--no-role"], 2, ["Flags are mutually exclusive: --role, --no-role"]),
    (["text", "--role", "missing.md"], 2, ["No role file", "/missing.md"]),
    (["--task-file", "missing.md"], 2, ["missing.md"]),
    (["-p", "8"], 1, ["No spec for project 8", "0009-terminal-click", "0010-login"]),
    (["-p", "0019"], 1, ["No spec for project 0019", "The nearest is 0010-login"]),
    (["--protocol", "clenup"], 1, ["cleanup, experiment", "hint: af spawn --protocol cleanup"]),
    (["--protocol", "../roles"], 1, ["cleanup, experiment"]),
    (["text", "--runtime", "claud-code"], 2, ["claude-code", "demo", "hint: af spawn --runtime claude-code"]),
    (["text", "--base", "mian"], 1, ["No such commit: 'mian'", "main"]),
    (["text", "--base", "--all"], 1, ["No such commit"]),
    (["text", "--branch", "none"], 1, ["No branch none"]),
    (["text", "--branch", "main"], 2, ["The branch main is checked out elsewhere", "af spawn --base main"]),
    (["text", "--files", "src/none.py"], 1, ["src/none.py is not in the repository"]),
    (["text", "--files", "../outside"], 2, ["is outside the repository"]),
    (["text", "--files", "/etc/passwd"], 2, ["is outside the repository"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("args", "code", "words"), REFUSED, ids=[" ".join(case[0]) or "-" for case in REFUSED]
)
def test_a_mistake_is_refused_and_nothing_is_created(
    farm: Path, af: Af, args: list[str], code: int, words: list[str]
) -> None:
    runtime = [] if "--runtime" in args else ["--runtime", "demo"]
    done = af("spawn", *runtime, *args)
    assert done.returncode == code, done
    assert done.stdout == ""
    for word in words:
        assert word in done.stderr
    assert traces(farm).left() == {}
    assert not (farm / ".agent-farm/registry.json").exists()


@pytest.mark.parametrize(
    ("file", "args"),
    [
        ("codev/specs/0011-new.md", ["-p", "11"]),
        ("src/new file.py", ["text", "--files", "src/new file.py"]),
        ("codev/protocols/tick/protocol.md", ["--protocol", "tick"]),
    ],
)
def test_what_is_not_committed_is_refused_with_the_command_that_commits_it(
    farm: Path, af: Af, file: str, args: list[str]
) -> None:
    """The command is tried: afterwards the spawn works."""
    write_files(farm, {file: "# New\n"})
    refused = af("spawn", "--runtime", "demo", *args)
    assert refused.returncode == 1
    assert traces(farm).left() == {}
    hint = refused.stderr.rpartition("hint: ")[2].strip()
    assert re.fullmatch(r"git add -- .* && git commit -m .*", hint)
    git(farm, "-c", f"alias.hinted=!{hint}", "hinted")
    assert af("spawn", "--runtime", "demo", *args).returncode == 0


@pytest.mark.parametrize(
    ("file", "args"),
    [
        ("codev/specs/0010-login.md", ["-p", "10"]),
        ("codev/plans/0010-login.md", ["-p", "10"]),
        ("codev/protocols/experiment/role.md", ["--protocol", "experiment"]),
        ("src/auth.py", ["text", "--files", "src/login.py", "--files", "src/auth.py"]),
    ],
)
def test_what_is_edited_and_not_committed_is_named(farm: Path, af: Af, file: str, args: list[str]) -> None:
    """The builder gets the committed text, and the person knows."""
    (farm / file).write_text("edited\n")
    done = af("spawn", "--runtime", "demo", "--dry-run", *args)
    assert f"{file} has uncommitted changes; the builder gets the committed text" in done.stderr
    assert f"git add -- {file} && git commit" in done.stderr
    assert "uncommitted" not in af("spawn", "--runtime", "demo", "--dry-run", "other").stderr
    assert af("config", "set", "worktree.uncommitted", "true").returncode == 0
    assert "uncommitted" not in af("spawn", "--runtime", "demo", "--dry-run", *args).stderr


def test_a_plan_that_is_not_committed_is_named(farm: Path, af: Af) -> None:
    write_files(farm, {"codev/plans/0009-terminal-click.md": "# Plan\n"})
    done = af("spawn", "--runtime", "demo", "--dry-run", "-p", "9")
    assert "codev/plans/0009-terminal-click.md is not committed; the builder does not get it" in done.stderr


@pytest.mark.parametrize("args", [["-p", "9"], ["--protocol", "cleanup"]])
def test_a_prompt_that_names_paths_starts_where_they_are(farm: Path, af: Af, args: list[str]) -> None:
    builder = spawn(af, *args, cwd=farm / "src")
    assert builder["subdirectory"] == ""


def test_a_spec_that_has_a_builder_is_refused_with_what_to_do(farm: Path, af: Af) -> None:
    spawn(af, "-p", "9")
    wait_until(lambda: traces(farm).processes, what="its launcher")
    before = traces(farm)
    done = af("spawn", "--runtime", "demo", "-p", "0009")
    assert done.returncode == 2
    for command in ("af attach 0009", "af resume 0009", "af prune 0009"):
        assert command in done.stderr
    assert traces(farm) == before


def test_a_dry_run_says_what_a_spawn_would(farm: Path, af: Af) -> None:
    spawn(af, "-p", "9")
    done = af("spawn", "--runtime", "demo", "-p", "9", "--dry-run")
    assert done.returncode == 2
    assert "Project 0009 already has a builder" in done.stderr


def test_a_protocol_as_a_shell_completes_its_directory(farm: Path, af: Af) -> None:
    assert af("spawn", "--runtime", "demo", "--protocol", "cleanup/", "--dry-run").returncode == 0


def test_a_branch_of_odd_characters_is_told_and_not_obeyed(farm: Path, af: Af) -> None:
    git(farm, "branch", "x\u202ey")
    done = af("spawn", "--runtime", "demo", "--shell", "--branch", "x\u202ey")
    assert done.returncode == 0
    assert "\u202e" not in done.stderr


def test_a_spec_whose_branch_is_checked_out_elsewhere_is_refused(farm: Path, af: Af, tmp_path: Path) -> None:
    side = tmp_path / "side"
    git(farm, "worktree", "add", "-q", "-b", "builder/0009-terminal-click", str(side))
    done = af("spawn", "--runtime", "demo", "-p", "9")
    assert done.returncode == 2
    assert str(side) in done.stderr
    assert not traces(farm).records


def test_a_directory_in_the_way_of_a_spec_is_named(farm: Path, af: Af) -> None:
    """Somebody's files: they are neither used nor removed."""
    write_files(farm / ".builders/0009", {"mine.txt": "mine\n"})
    done = af("spawn", "--runtime", "demo", "-p", "9")
    assert done.returncode == 1
    assert str(farm / ".builders/0009") in done.stderr
    assert (farm / ".builders/0009/mine.txt").read_text() == "mine\n"
    assert not traces(farm).records


def test_the_limit_of_builders(farm: Path, af: Af) -> None:
    (farm / "agent-farm.toml").write_text("[limits]\nmax_builders = 1\n")
    spawn(af, "One")
    done = af("spawn", "--runtime", "demo", "Two", "--no-queue")
    assert done.returncode == 1
    assert "1 builder runs, and limits.max_builders is 1" in done.stderr
    (id,) = traces(farm).records
    assert f"hint: af stop {id}" in done.stderr
    assert len(traces(farm).ports) == 1


def test_only_builders_that_run_count_against_the_limit(farm: Path, af: Af) -> None:
    (farm / "agent-farm.toml").write_text("[limits]\nmax_builders = 2\n")
    stopped = [spawn(af, word)["id"] for word in ("One", "Two")]
    assert af("stop", *stopped).returncode == 0
    for word in ("Three", "Four"):
        spawn(af, word)
    done = af("spawn", "--runtime", "demo", "Five", "--no-queue")
    assert done.returncode == 1
    assert "2 builders run, and limits.max_builders is 2" in done.stderr
    assert "2 that ended or were stopped do not count" in done.stderr
    assert "hint: af status" in done.stderr
    assert len(traces(farm).records) == 4
    refused = af("resume", stopped[0])
    assert refused.returncode == 1
    assert "limits.max_builders is 2" in refused.stderr


@pytest.mark.parametrize("as_json", [False, True])
def test_a_dry_run_shows_and_makes_nothing(farm: Path, af: Af, as_json: bool) -> None:
    done = af("spawn", "--runtime", "demo", "--dry-run", "-p", "9", *(["--json"] if as_json else []))
    assert done.returncode == 0
    assert "builder/0009-terminal-click" in done.stdout
    if as_json:
        plan = json.loads(done.stdout)["plan"]
        assert (plan["type"], plan["id"], plan["runtime"], plan["base"]) == ("spec", "0009", "demo", "main")
    assert traces(farm).left() == {}
    assert not (farm / ".agent-farm").exists()


def test_an_error_as_json(farm: Path, af: Af) -> None:
    done = af("spawn", "--runtime", "demo", "--json", "--protocol", "clenup")
    error = json.loads(done.stdout)
    assert done.returncode == 1
    assert error["version"] == 1
    assert error["error"]["evidence"] == []
    assert error["error"]["code"] == "not-found"
    assert error["error"]["hint"] == "af spawn --protocol cleanup"
    assert done.stderr == ""


def test_help_shows_every_mode_with_an_example(af: Af) -> None:
    done = af("spawn", "--help")
    assert done.returncode == 0
    for example in ('af spawn "', "--files", "--task ", "--project 0009", "--protocol cleanup",
                    "--args '{", "af spawn --shell", "--role custom.md", "--task-file"):  # fmt: skip
        assert example in done.stdout


def test_the_default_model_is_for_the_default_runtime(af: Af, repo: Path) -> None:
    settings = '[spawn]\nruntime = "claude-code"\nmodel = "opus"\n[runtimes.codex]\nmodel = "gpt"\n'
    (repo / "agent-farm.toml").write_text(settings)

    def model(*words: str) -> str | None:
        shown = af("spawn", "x", *words, "--json", "--dry-run").stdout
        return json.loads(shown)["plan"]["model"]  # type: ignore[no-any-return]

    assert model("--runtime", "demo") is None
    assert model("--runtime", "demo", "--model", "small") == "small"
    (repo / "agent-farm.toml").write_text(settings.replace("claude-code", "demo"))
    assert (model(), model("--runtime", "demo")) == ("opus", "opus")
