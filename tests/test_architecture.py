"""The house has floors: imports go down only, each outside thing has one room, start-up stays light."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import pytest

PACKAGE = Path(__file__).parent.parent / "agent_farm"
ROOMS_OF_FLOOR = {
    "door": {"board", "cli", "server", "butler", "__main__"},
    "operation": {"operations", "live"},
    "landing": {"landing", "review"},
    "use case": {
        "farm", "sessions", "ask", "fleet",
        # the server as it is seen from outside: where it is, how it is started, asked and ended
        "server.address", "server.client", "server.launching", "server.starting",
        "server.stopping",
        "server.callers", "server.tokens", "server.variables",
    },
    "edge": {"engine", "git", "forge", "governor", "ssh", "tmux", "runtimes", "pane", "builders.registry"},
    "value": {
        "", "asked_program", "builders", "clock_jumps", "consent", "descendants", "digests", "disk",
        "documents", "errors", "inside", "launch", "lean", "loopback", "own_files", "own_process", "pace",
        "paths", "ports", "printable", "processes", "search_path", "settings", "settings_document",
        "settings_file", "settings_keys", "settings_text", "shield", "typed", "uncancelled", "usage_limits",
    },
}  # fmt: skip
HEIGHT = {"door": 5, "operation": 4, "landing": 3, "use case": 2, "edge": 1, "value": 0}

# What belongs to one room, wherever else it would be handy.
ONLY_IN = {
    "git": "git",
    "gitdb": "git",
    "libtmux": "tmux",
    "ray": "engine",
    "sqlite3": "sessions",
    "starlette": None,
}
HEAVY = (
    "libtmux", "git", "asyncio", "logging", "importlib.metadata", "pydantic", "mcp", "claude_agent_sdk",
    "starlette", "sqlite3", "textual", "rich", "ray",
)  # fmt: skip
# What completes, starts, ends, compares and proves: `af status` of builders that nothing happened to.
OF_NO_STATUS = (
    "queue", "click.shell_completion", "agent_farm.cli.completing", "agent_farm.tmux.start",
    "agent_farm.tmux.session_end", "agent_farm.farm.proofs", "agent_farm.pane.journal",
)  # fmt: skip
# Started as files under `python -I -S`: nothing of site-packages is there.
STDLIB_ONLY = (
    "pane", "governor", "descendants", "pace", "usage_limits", "runtimes.demo_agent",
    "runtimes.external_driver", "runtimes.guard", "ssh.bounded_copy",
)  # fmt: skip
LATER = ("_sha2",)  # parts of later Pythons, tried first
SEEN_BY_THE_PANE = ("descendants", "digests", "lean", "pace", "usage_limits")
# Programs of their own, in a pane or behind a pipe: their standard output is not af's.
PROGRAMS = (
    "governor.build_shim", "landing.turn_end",
    "pane", "runtimes.acp_worker", "runtimes.claude_worker",
    "runtimes.console", "runtimes.demo_agent", "runtimes.executables",
    "runtimes.external_driver", "ssh.bounded_copy",
)  # fmt: skip


@cache
def modules() -> dict[str, Path]:
    """`farm.spawn` -> its file; packages under their own name."""
    names = {}
    for path in sorted(PACKAGE.rglob("*.py")):
        parts = path.relative_to(PACKAGE).with_suffix("").parts
        names[".".join(part for part in parts if part != "__init__")] = path
    return names


def imports(path: Path) -> Iterator[tuple[int, str]]:
    """Every import of a file with its line, also inside functions and for type checkers."""
    for node in ast.walk(ast.parse(path.read_bytes())):
        if isinstance(node, ast.Import):
            for alias in node.names:
                yield node.lineno, alias.name
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}:{node.lineno} imports relatively"
            for alias in node.names:
                whole = f"{node.module}.{alias.name}"
                yield (
                    node.lineno,
                    whole if whole.removeprefix("agent_farm.") in modules() else str(node.module),
                )


def own(name: str) -> str | None:
    """The name inside the package, None for everybody else's."""
    if name == "agent_farm":
        return ""
    return name.removeprefix("agent_farm.") if name.startswith("agent_farm.") else None


def floor(module: str) -> str:
    """By the longest name that fits: `butler.mcp_server` before `butler`."""
    parts = module.split(".")
    for length in range(len(parts), -1, -1):
        name = ".".join(parts[:length])
        for kind, rooms in ROOMS_OF_FLOOR.items():
            if name in rooms:
                return kind
    raise AssertionError(f"{module} is on no floor: add its room to ROOMS_OF_FLOOR")


def room(module: str) -> str:
    return module if module == "builders.registry" else module.split(".")[0]


def test_every_module_is_on_a_floor() -> None:
    top = {name.split(".")[0] for name in modules()}
    known = {name.split(".")[0] for rooms in ROOMS_OF_FLOOR.values() for name in rooms}
    assert top <= known


def test_imports_go_down_only() -> None:
    wrong = []
    for module, path in modules().items():
        for line, name in imports(path):
            target = own(name)
            if target is None or room(target) == room(module):
                continue
            if HEIGHT[floor(target)] > HEIGHT[floor(module)]:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} ({floor(module)}) imports {name}")
    assert wrong == []


def test_edges_do_not_import_each_other() -> None:
    wrong = []
    for module, path in modules().items():
        if floor(module) != "edge":
            continue
        for line, name in imports(path):
            target = own(name)
            if target is not None and floor(target) == "edge" and room(target) != room(module):
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}")
    assert wrong == []


def test_each_outside_thing_has_one_room() -> None:
    wrong = []
    for module, path in modules().items():
        for line, name in imports(path):
            owner = ONLY_IN.get(name.split(".")[0], room(module))
            if own(name) is None and owner is not None and room(module) != owner:
                wrong.append(f"{path.relative_to(PACKAGE)}:{line} imports {name}; that is {owner}/'s")
    assert wrong == []


def test_click_stays_in_the_terminal_door() -> None:
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line}"
        for module, path in modules().items()
        for line, name in imports(path)
        if name.split(".")[0] == "click" and room(module) != "cli"
    ]
    assert wrong == []


@pytest.mark.parametrize("place", STDLIB_ONLY)
def test_what_runs_in_a_pane_needs_the_standard_library_alone(place: str) -> None:
    """With all that it imports."""
    wrong, seen = [], set()
    waiting = [module for module in modules() if module == place or module.startswith(f"{place}.")]
    while waiting:
        module = waiting.pop()
        seen.add(module)
        for line, name in imports(modules()[module]):
            target = own(name)
            if target is None and name.split(".")[0] not in {*sys.stdlib_module_names, *LATER}:
                wrong.append(f"{modules()[module].relative_to(PACKAGE)}:{line} imports {name}")
            elif target is not None and target not in seen:
                waiting.append(target)
    assert wrong == []


def test_the_pane_sees_nothing_of_the_package_but_its_own_room() -> None:
    """And how descendants are ended and a usage limit is known, which need nothing but what is lean."""
    wrong = [
        f"{path.relative_to(PACKAGE)}:{line} imports {name}"
        for module, path in modules().items()
        if room(module) == "pane"
        for line, name in imports(path)
        if own(name) is not None and room(str(own(name))) not in ("pane", *SEEN_BY_THE_PANE)
    ]
    assert wrong == []


def calls(path: Path) -> Iterator[ast.Call]:
    """Of what others can import: what stands under `if __name__ == "__main__"` is a program of its own."""
    for statement in ast.parse(path.read_bytes()).body:
        if not (isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)):
            yield from (node for node in ast.walk(statement) if isinstance(node, ast.Call))


def test_only_one_file_prints() -> None:
    """The pane's programs are doors of their own; what else writes to a stream goes through output.py."""
    wrong = []
    for module, path in modules().items():
        if module == "cli.output" or module.startswith(PROGRAMS):
            continue
        for call in calls(path):
            text = ast.unparse(call.func)
            if text in ("print", "click.echo", "click.secho", "sys.stdout.write", "sys.stderr.write"):
                wrong.append(f"{path.relative_to(PACKAGE)}:{call.lineno} calls {text}")
    assert wrong == []


def test_nothing_goes_through_a_shell() -> None:
    wrong = []
    for path in modules().values():
        for call in calls(path):
            text = ast.unparse(call.func)
            starts = text.startswith("subprocess.") or text in ("run", "Popen")
            shell = any(keyword.arg == "shell" and _is_true(keyword.value) for keyword in call.keywords)
            if (starts and shell) or text in (
                "os.system", "os.popen", "subprocess.getoutput", "subprocess.getstatusoutput",
                "asyncio.create_subprocess_shell",
            ):  # fmt: skip
                wrong.append(f"{path.relative_to(PACKAGE)}:{call.lineno} calls {text}")
    assert wrong == []


def _is_true(node: ast.expr) -> bool:
    return not (isinstance(node, ast.Constant) and node.value is False)


def test_no_switch_asks_whether_this_is_a_test() -> None:
    for module, path in modules().items():
        if module.startswith("landing.flags"):  # these look for such switches in what builders wrote
            continue
        text = path.read_text()
        assert "PYTEST" not in text, path
        assert "unittest" not in text, path


def test_every_module_postpones_annotations() -> None:
    for module, path in modules().items():
        body = ast.parse(path.read_bytes()).body
        if path.name != "__init__.py" and not module.endswith("__main__"):
            assert any(isinstance(node, ast.ImportFrom) and node.module == "__future__" for node in body), (
                path
            )


def loaded_by(*arguments: str, cwd: Path) -> set[str]:
    """The modules in memory once the real command line is done, and the dataclasses that were made."""
    code = (
        "import sys\n"
        "from agent_farm.cli.main import run\n"
        "code = run(sys.argv[1:])\n"
        "made = [f'dataclass:{name}.{key}' for name, module in sys.modules.items()\n"
        "    for key, one in vars(module).items()\n"
        "    if getattr(one, '__module__', '') == name and hasattr(one, '__dataclass_fields__')]\n"
        "print('\\n'.join(['modules:', *sys.modules, *made]), file=sys.stderr)\n"
        "sys.exit(code)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, *arguments],
        cwd=cwd,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent)},
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )
    assert done.returncode == 0, done.stderr
    return set(done.stderr.partition("modules:\n")[2].split())


@pytest.mark.parametrize(
    "arguments",
    [["--help"], ["status"], ["spawn", "--help"], ["spawn", "--runtime", "demo", "Fix"], ["--version"]],
    ids=" ".join,
)
def test_start_up_stays_light(repo: Path, arguments: list[str]) -> None:
    loaded = loaded_by(*arguments, cwd=repo)
    assert "click" in loaded
    assert sorted(name for name in HEAVY if name in loaded) == []


def test_status_with_builders_stays_light(repo: Path) -> None:
    loaded_by("spawn", "--runtime", "demo", "Fix", cwd=repo)
    loaded = loaded_by("status", cwd=repo)
    assert sorted(name for name in (*HEAVY, *OF_NO_STATUS) if name in loaded) == []


@pytest.mark.parametrize("arguments", [["status"], ["spawn", "--runtime", "demo", "Fix"]], ids=" ".join)
def test_without_a_fleet_nothing_of_it_is_loaded(repo: Path, arguments: list[str]) -> None:
    loaded = loaded_by(*arguments, cwd=repo)
    rooms = (
        "agent_farm.engine",
        "agent_farm.fleet",
        "agent_farm.ssh",
        "agent_farm.operations.fleet",
        "agent_farm.operations.for_home",
    )
    assert sorted(name for name in loaded if name.startswith(rooms)) == []


# What several verbs are made with.
SHARED_BY_VERBS = ("builders", "declare", "operation", "requests", "served", "shown", "table")


@pytest.mark.parametrize(
    ("command", "module"),
    [("check", "check"), ("conflicts", "conflicts"), ("diff", "diff"), ("path", "look"), ("send", "send"),
     ("status", "status"), ("wait", "wait")],
)  # fmt: skip
def test_a_command_loads_no_other_verb(repo: Path, command: str, module: str) -> None:
    loaded = loaded_by(command, "--help", cwd=repo)
    verbs = {name.removeprefix("agent_farm.operations.") for name in loaded if ".operations." in name}
    assert verbs - {*SHARED_BY_VERBS} == {module}


@pytest.mark.parametrize("arguments", [["diff"], ["spawn", "--runtime", "demo", "Fix"]], ids=" ".join)
def test_what_only_servers_and_headless_runs_need_is_not_loaded(repo: Path, arguments: list[str]) -> None:
    """OpenSSL, parsers of events, dataclasses of results, and how a server is started once one runs."""
    loaded_by("spawn", "--runtime", "demo", "--name", "one", "Fix", cwd=repo)
    loaded = loaded_by(*arguments, *(["one"] if arguments == ["diff"] else []), cwd=repo)
    own = ("runtimes.lines", "runtimes.result", "server.starting", "server.callers", "farm.healing")
    heavy = {"hashlib", "hmac", "base64", *(f"agent_farm.{name}" for name in own)}
    assert sorted(loaded & heavy) == []


def test_what_libraries_want_for_one_function_is_not_loaded(repo: Path) -> None:
    unused = {"inspect", "platform", "textwrap", "urllib.parse", "ipaddress", "typing_extensions"}
    for arguments in (["status"], ["spawn", "--runtime", "demo", "Fix"]):
        assert sorted(loaded_by(*arguments, cwd=repo) & unused) == []


def test_commands_are_completed_by_their_table_alone(repo: Path) -> None:
    words = {"_AF_COMPLETE": "bash_complete", "COMP_WORDS": "af st", "COMP_CWORD": "1"}
    code = (
        "import sys\nfrom agent_farm.cli.main import run\n"
        "try:\n    run([])\nfinally:\n    print('modules:', *sys.modules, file=sys.stderr)\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        cwd=repo,
        env={**os.environ, "PYTHONPATH": str(PACKAGE.parent), **words},
        capture_output=True,
        text=True,
    )
    assert done.stdout.split() == ["plain,status", "plain,stop"]
    loaded = set(done.stderr.partition("modules:")[2].split())
    assert "click.shell_completion" in loaded
    assert {"msgspec", "pathlib", "agent_farm.cli.status", "agent_farm.cli.stop"} & loaded == set()


def test_the_server_begins_without_the_library_of_mcp() -> None:
    """It takes as much memory as all else, and most servers serve a page alone for hours."""
    code = "import sys, agent_farm.server.serving, agent_farm.server.app; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    loaded = set(done.stdout.split())
    assert "starlette" in loaded
    assert {"mcp", "mcp_types", "pydantic", "cryptography", "httpx2"} & loaded == set()


def test_status_makes_no_dataclass(repo: Path) -> None:
    """Each takes forty times as long to make as a Struct, at every start."""
    loaded_by("spawn", "--runtime", "demo", "Fix", cwd=repo)
    made = [line for line in loaded_by("status", cwd=repo) if "dataclass:agent_farm" in line]
    assert made == []


def test_importing_the_package_does_nothing(tmp_path: Path) -> None:
    """No file appears, no process starts, no variable is read that changes how it behaves."""
    code = (
        "import sys\n"
        "seen = []\n"
        "watch = ('subprocess.Popen', 'os.mkdir', 'os.rename', 'os.system', 'socket.bind', 'os.putenv')\n"
        "sys.addaudithook(lambda event, given: seen.append((event, given)) if event in watch else 0)\n"
        "import agent_farm.cli.main, agent_farm.operations.spawn, agent_farm.farm.listing\n"
        "assert seen == [], seen\n"
    )
    environment = {**os.environ, "PYTHONPATH": str(PACKAGE.parent), "PYTHONDONTWRITEBYTECODE": "1"}
    subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, check=True, timeout=60)


def late_imports(path: Path) -> list[tuple[int, str]]:
    """Those inside functions, by line; a package that makes its names lazily imports as it is asked."""
    return [
        (node.lineno, str(node.module) if isinstance(node, ast.ImportFrom) else node.names[0].name)
        for function in ast.walk(ast.parse(path.read_bytes()))
        if isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef)
        for node in ast.walk(function)
        if isinstance(node, ast.Import | ast.ImportFrom) and path.name != "__init__.py"
    ]


@pytest.mark.slow
def test_an_import_inside_a_function_is_of_what_is_not_loaded_anyway() -> None:
    wrong = []
    for module, path in modules().items():
        late = [] if module.endswith("__main__") else late_imports(path)
        if not late:
            continue
        code = (
            f"import sys, agent_farm.{module}\n"
            f"print(*(line for line, name in {late!r} if name in sys.modules))"
        )
        done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        wrong += [f"{path.relative_to(PACKAGE)}:{line}" for line in done.stdout.split()]
    assert wrong == []


LONGEST = 320  # about 80 is usual; beyond this a file wants to be two, along a noun


def test_no_file_is_too_long_to_be_read() -> None:
    lengths = {path: len(path.read_text().splitlines()) for path in modules().values()}
    long = {str(path.relative_to(PACKAGE)): size for path, size in lengths.items() if size > LONGEST}
    assert long == {}
