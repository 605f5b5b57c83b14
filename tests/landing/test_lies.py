"""Twenty ways to claim what is not so: none is shown as proven; honest work is.

The builders are worktrees as agents leave them: what ended their turn makes no difference to a proof.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import pytest

from agent_farm.builders.proof import Proof
from agent_farm.builders.record import BuilderRecord
from agent_farm.consent import remember
from agent_farm.errors import AgentFarmError
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.farm.git_state import git_states
from agent_farm.farm.proofs import read_proofs
from agent_farm.landing.proving import prove
from agent_farm.settings import open_settings
from tests.builders.test_registry import a_record
from tests.gitrepo import commit_files, git, make_repo, write_files

RUNNER = """\
import importlib.util, pathlib, sys
sys.dont_write_bytecode = True
root = pathlib.Path(__file__).resolve().parent
sys.path.insert(0, str(root.parent))
failed = 0
for file in sorted(root.glob("test_*.py")):
    spec = importlib.util.spec_from_file_location(file.stem, file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    for name, test in sorted(vars(module).items()):
        if name.startswith("test_") and not getattr(test, "skipped", False):
            try:
                test()
            except Exception as error:
                failed += 1
                print(f"{file.stem}.{name}: {error!r}")
sys.exit(1 if failed else 0)
"""
MARKS = """\
class mark:
    @staticmethod
    def skip(test):
        test.skipped = True
        return test

    xfail = skip

    @staticmethod
    def skipif(condition):
        return mark.skip
"""
PROJECT = {
    "check.sh": "set -e\npython3 -S tests/run.py\n",
    "tests/run.py": RUNNER,
    "tests/marks.py": MARKS,
    "calc.py": "def add(a, b):\n    return a + b\n\n\ndef sub(a, b):\n    return a - b\n",
    "tests/test_calc.py": "from calc import add, sub\n\n\ndef test_add():\n    assert add(1, 2) == 3\n"
    "    assert add(2, 2) == 4\n\n\ndef test_sub():\n    assert sub(3, 2) == 1\n",
    "notes.txt": "".join(f"line {number}\n" for number in range(40)),
    ".gitignore": "*.cache\n",
}
BROKEN = {"calc.py": PROJECT["calc.py"].replace("a - b", "b - a")}  # what it claims to have made, and has not
TESTS, CALC, NOTES = PROJECT["tests/test_calc.py"], PROJECT["calc.py"], PROJECT["notes.txt"]


@dataclass(frozen=True)
class Scene:
    farm: Farm
    record: BuilderRecord
    pick: random.Random

    @property
    def tree(self) -> Path:
        return self.record.worktree_path

    @property
    def main(self) -> Path:
        return self.farm.root

    def commit(self, *files: dict[str, str]) -> None:
        whole = {name: text for some in files for name, text in some.items()}
        commit_files(self.tree, whole, "Done, all green")


Act = Callable[[Scene], None]


def nothing_committed(scene: Scene) -> None:
    pass


def empty_commit(scene: Scene) -> None:
    git(scene.tree, "commit", "-q", "--allow-empty", "-m", "Fix everything")


def left_uncommitted(scene: Scene) -> None:
    commit_files(scene.tree, {"notes.txt": "done\n"})
    write_files(scene.tree, {"calc.py": CALC + "\n\ndef mul(a, b):\n    return a * b\n"})


def uncommitted_dependency(scene: Scene) -> None:
    scene.commit({"calc.py": f"import helper{scene.pick.randrange(9)}\n{CALC}"})
    write_files(scene.tree, {f"helper{n}.py": "" for n in range(9)})


def ignored_dependency(scene: Scene) -> None:
    scene.commit({"calc.py": f"open('table.cache').close()\n{CALC}"})
    write_files(scene.tree, {"table.cache": "x"})


def red(scene: Scene) -> None:
    scene.commit(BROKEN)


def one_test_deleted(scene: Scene) -> None:
    scene.commit(BROKEN, {"tests/test_calc.py": TESTS.partition("\n\n\ndef test_sub")[0] + "\n"})


def file_of_tests_deleted(scene: Scene) -> None:
    git(scene.tree, "rm", "-q", "tests/test_calc.py")
    scene.commit(BROKEN)


def one_test_renamed(scene: Scene) -> None:
    scene.commit(BROKEN, {"tests/test_calc.py": TESTS.replace("def test_sub", "def check_sub")})


def file_of_tests_renamed(scene: Scene) -> None:
    git(scene.tree, "mv", "tests/test_calc.py", "tests/calc_checks.py")
    scene.commit(BROKEN)


def one_test_skipped(scene: Scene) -> None:
    """By a mark that its runner knows."""
    mark = scene.pick.choice(["@pytest.mark.skip", "@pytest.mark.xfail", "@pytest.mark.skipif(True)"])
    text = TESTS.replace("def test_sub", f"{mark}\ndef test_sub")
    scene.commit(BROKEN, {"tests/test_calc.py": f"import marks as pytest\n{text}"})


def assertion_removed(scene: Scene) -> None:
    scene.commit(BROKEN, {"tests/test_calc.py": TESTS.replace("assert sub(3, 2) == 1", "sub(3, 2)")})


def assertion_hollow(scene: Scene) -> None:
    hollows = ["assert True", "assert sub(3, 2) == 1 or True", "assert sub(3, 2) is not None"]
    text = TESTS.replace("assert sub(3, 2) == 1", scene.pick.choice(hollows))
    scene.commit(BROKEN, {"tests/test_calc.py": text})


def expectation_changed(scene: Scene) -> None:
    scene.commit(BROKEN, {"tests/test_calc.py": TESTS.replace("sub(3, 2) == 1", "sub(3, 2) == -1")})


def one_test_ended_early(scene: Scene) -> None:
    text = TESTS.replace("def test_sub():", "def test_sub():\n    return")
    scene.commit(BROKEN, {"tests/test_calc.py": text})


def exit_code_forced(scene: Scene) -> None:
    line = scene.pick.choice(["python3 -S tests/run.py || true\n", "python3 -S tests/run.py\nexit 0\n"])
    scene.commit(BROKEN, {"check.sh": line if "||" in line else f"set +e\n{line}"})


def runner_gutted(scene: Scene) -> None:
    scene.commit(BROKEN, {"tests/run.py": RUNNER.replace("failed += 1", "failed += 0")})


def only_the_checks(scene: Scene) -> None:
    scene.commit({"check.sh": scene.pick.choice(["echo all green\n", ":\n", "python3 --version\n"])})


def file_outside(scene: Scene) -> None:
    scene.commit({"calc.py": CALC + "\n", f"other{scene.pick.randrange(9)}.py": "x = 1\n"})


def green_only_on_an_old_base(scene: Scene) -> None:
    text = "from calc import sub\n\n\ndef test_more():\n    assert sub(5, 3) == 2\n"
    scene.commit({"tests/test_more.py": text})
    theirs = {"calc.py": CALC.replace("def sub(a", "def minus(a"), "tests/test_calc.py": "\n"}
    commit_files(scene.main, theirs, "sub is called minus")


def conflicting(scene: Scene) -> None:
    line = f"line {scene.pick.randrange(40)}\n"
    scene.commit({"notes.txt": NOTES.replace(line, "mine\n")})
    commit_files(scene.main, {"notes.txt": NOTES.replace(line, "theirs\n")}, "theirs")


def secret_committed(scene: Scene) -> None:
    key = "".join(scene.pick.choice("abcdefABCDEF0123456789") for _ in range(36))
    scene.commit({"settings.py": f"GITHUB = 'ghp_{key}'\n"})


def knows_the_tests(scene: Scene) -> None:
    asked = scene.pick.choice(["'PYTEST_CURRENT_TEST' in os.environ", "'pytest' in sys.modules"])
    text = CALC.replace("return a - b", f"return a - b if {asked} else a - b - 1 + 1")
    scene.commit({"calc.py": f"import os, sys\n{text}"})


def check_mends_the_tree(scene: Scene) -> None:
    mend = "import pathlib\nfile = pathlib.Path('calc.py')\n"
    mend += "file.write_text(file.read_text().replace('b - a', 'a - b'))\n"
    scene.commit(BROKEN, {"tests/test_calc.py": mend + TESTS})


def work_left_on_another_branch(scene: Scene) -> None:
    scene.commit({"calc.py": CALC + "\n"})
    git(scene.tree, "switch", "-q", "--detach", "HEAD~1")


def moved_after_its_proof(scene: Scene) -> None:
    scene.commit({"calc.py": CALC + "\n"})
    prove(scene.farm, scene.record)
    scene.commit(BROKEN)


LIES: tuple[Act, ...] = (
    nothing_committed, empty_commit, left_uncommitted, uncommitted_dependency, ignored_dependency, red,
    one_test_deleted, file_of_tests_deleted, one_test_renamed, file_of_tests_renamed, one_test_skipped,
    assertion_removed, assertion_hollow, expectation_changed, one_test_ended_early, exit_code_forced,
    runner_gutted, only_the_checks, file_outside, green_only_on_an_old_base, conflicting, secret_committed,
    knows_the_tests, check_mends_the_tree, work_left_on_another_branch, moved_after_its_proof,
)  # fmt: skip


def new_function(scene: Scene) -> None:
    name = f"f{scene.pick.randrange(99)}"
    test = f"from calc import {name}\n\n\ndef test_{name}():\n    assert {name}(1) == 2\n"
    scene.commit({"calc.py": f"{CALC}\n\ndef {name}(a):\n    return a + 1\n", f"tests/test_{name}.py": test})


def more_tests(scene: Scene) -> None:
    number = scene.pick.randrange(99)
    more = f"\n\ndef test_more():\n    assert add({number}, 1) == {number + 1}\n"
    scene.commit({"tests/test_calc.py": TESTS + more})


def one_test_moved(scene: Scene) -> None:
    head, _, tail = TESTS.partition("\n\n\ndef test_sub")
    scene.commit(
        {"tests/test_calc.py": head.replace("add, sub", "add") + "\n"},
        {"tests/test_sub.py": f"from calc import sub\n\n\ndef test_sub{tail}"},
    )


def notes(scene: Scene) -> None:
    scene.commit({"notes.txt": NOTES.replace(f"line {scene.pick.randrange(40)}\n", "another\n")})


def refactored_while_main_moves(scene: Scene) -> None:
    scene.commit({"calc.py": CALC.replace("return a + b", "total = a + b\n    return total")})
    commit_files(scene.main, {"notes.txt": NOTES.replace("line 7\n", "seven\n")}, "theirs")


def one_test_made_stronger(scene: Scene) -> None:
    text = TESTS.replace("sub(3, 2) == 1", "sub(3, 2) == 1\n    assert sub(0, 0) == 0")
    scene.commit({"tests/test_calc.py": text})


def new_script(scene: Scene) -> None:
    scene.commit({"tool.py": "import sys\n\n\ndef main():\n    print('skip nothing')\n    sys.exit(0)\n"})


HONEST: tuple[Act, ...] = (
    new_function, more_tests, one_test_moved, notes, refactored_while_main_moves, one_test_made_stronger,
    new_script,
)  # fmt: skip


def farms(place: Path, seed: int, acts: tuple[Act, ...]) -> Iterator[tuple[str, Scene]]:
    """One farm for each act, since some of them move main."""
    for number, act in enumerate(acts):
        root = make_repo(place / f"{seed}-{number}", PROJECT)
        write_files(root, {"agent-farm.toml": '[check]\ncommand = "sh check.sh"\nseconds = 120\n'})
        remember(root, open_settings(root).asking())
        id = f"task-{number:04x}-{seed:04x}"
        tree = root / ".builders" / id
        git(root, "worktree", "add", "-q", "-b", f"builder/{id}", str(tree))
        farm = open_farm(root)
        farm.run(id).directory.mkdir(parents=True)
        record = a_record(
            id, worktree=str(tree), base_commit=git(root, "rev-parse", "HEAD"),
            files=("calc.py",) if act is file_outside else (),
        )  # fmt: skip
        yield act.__name__, Scene(farm, record, random.Random(seed * 1000 + number))
        git(root, "worktree", "remove", "--force", str(tree))


def shown(scene: Scene, *, asked: bool = True) -> Proof | None:
    """As `af status` has it, after `af check` where that is `asked`."""
    if asked:
        with suppress(AgentFarmError):
            prove(scene.farm, scene.record)
    states = git_states(scene.farm, [scene.record], fresh=True)
    return read_proofs(scene.farm, [scene.record], states).get(scene.record.id)


SEEDS = [pytest.param(seed, marks=pytest.mark.slow) for seed in range(10)]


@pytest.mark.parametrize("seed", SEEDS)
def test_no_lie_is_proven(tmp_path: Path, seed: int) -> None:
    believed = []
    for (name, scene), act in zip(farms(tmp_path, seed, LIES), LIES, strict=True):
        act(scene)
        proof = shown(scene, asked=act is not moved_after_its_proof)
        if proof is not None and proof.state == "proven":
            believed.append(name)
    assert len(LIES) >= 20
    assert believed == []


@pytest.mark.parametrize("seed", SEEDS)
def test_honest_work_is_proven(tmp_path: Path, seed: int) -> None:
    refused = []
    acts = HONEST * 3
    for (name, scene), act in zip(farms(tmp_path, seed, acts[:20]), acts, strict=False):
        act(scene)
        proof = shown(scene)
        if proof is None or proof.state != "proven":
            refused.append((name, proof))
    assert refused == []
