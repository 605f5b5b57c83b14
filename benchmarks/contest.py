"""`af compare` on tasks whose right answer is known: how often a right one of three comes first.

How a task is made. One of the functions in `contest_functions.py` is to be written; its examples are the test
that the repository has. A solution is the function, or a mutant of it (an operator, number, name or condition
changed, in one place or two) that passes the examples: nobody hands in what the check refuses. Hidden tests,
the function's answers to 50 inputs, say which are right; a mutant that they cannot tell from it is. Six of
ten solutions are right. Of the wrong ones some repeat another's mistake, beyond those drawn twice by chance.

Each solution brings 10 to 40 asserts about inputs drawn as the hidden ones are. The author of a wrong one has
misunderstood the task in 1 of 20 cases, and then asserts what the own code answers; else the mistake was
overlooked, and no assert is about it. One of 20 test files needs a name that only its own solution has.

Own proofs, the tests on each other's code and the ranking are those of `af compare`, on a real repository.
The numbers in the ranking were chosen on other draws. How much depends on how good the tests are, and how
alike the mistakes, the last rows show: the same generator under harder settings, evaluated in memory.
"""

from __future__ import annotations

import ast
import os
import random
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any

from agent_farm.consent import remember
from agent_farm.farm.declared_checks import declared_checks
from agent_farm.farm.farm import Farm, open_farm
from agent_farm.git.entries import Entry
from agent_farm.git.git_process import run_git
from agent_farm.git.merge_trees import loose_commit
from agent_farm.git.snapshots import overlaid_tree
from agent_farm.landing.contest.cross_tests import Candidate, cross_tests
from agent_farm.landing.contest.ranking import Matrix, Standing, ranked
from agent_farm.landing.verdicts import verdict_of
from agent_farm.settings import open_settings
from benchmarks.contest_functions import FUNCTIONS, Function, Given
from benchmarks.stage import Rows, stage

TASKS = 300
BAR = 0.95
_SOLUTIONS = 3
_BRITTLE = 0.05
_HIDDEN = 50
_LEAST_MISTAKES = 8  # of a function: with fewer, those who are wrong would mostly agree
_TWICE_TRIED = 5000  # changes of a mutant; most places can be changed in fewer ways, or none
_MOST_STEPS = 5000  # of loops: more is taken for no end
_CHECK = 'for test in tests/test_*.py; do python3 -I -S "$test" || exit 1; done'

Call = Callable[..., object]


@dataclass(frozen=True)
class Setting:
    """How solutions are drawn: shares of right ones, of repeated mistakes, of authors who misunderstood."""

    name: str
    right: float = 0.6
    same_mistake: float = 0.05
    misunderstood: float = 0.05
    asserts: Sequence[int] = (10, 20, 40)


USUAL = Setting("as above")
HARDER = (
    Setting("half of the solutions right", right=0.5),
    Setting("1 of 10 repeats a mistake, 1 of 10 misunderstood", same_mistake=0.1, misunderstood=0.1),
    Setting("5 to 40 asserts", asserts=(5, 10, 20, 40)),
    Setting("0 to 20 asserts", asserts=(0, 2, 5, 10, 20)),
    Setting("4 of 10 misunderstood", misunderstood=0.4),
)


@dataclass(frozen=True)
class Solution:
    """`asks` are what its tests give to the function, and expect; `brittle`: only of its own code."""

    source: str
    is_right: bool
    asks: Sequence[tuple[Given, object]]
    brittle: bool


@dataclass(frozen=True)
class Pool:
    """Of one function: sources that pass its examples. No two of the wrong ones make the same mistake."""

    function: Function
    right: Sequence[str]
    wrong: Sequence[str]


def solutions(pool: Pool, setting: Setting, chance: random.Random) -> list[Solution]:
    found: list[Solution] = []
    for _ in range(_SOLUTIONS):
        right = chance.random() < setting.right
        source = chance.choice(pool.right if right else pool.wrong)
        before = [one.source for one in found if not one.is_right]
        if not right and before and chance.random() < setting.same_mistake:
            source = before[-1]
        asks = asks_of(pool, source, setting, chance)
        found.append(Solution(source, right, asks, bool(asks) and chance.random() < _BRITTLE))
    return found


def asks_of(pool: Pool, source: str, setting: Setting, chance: random.Random) -> list[tuple[Given, object]]:
    own, true = answers(source), answers(pool.function.source)
    misunderstood = chance.random() < setting.misunderstood
    given = [pool.function.inputs(chance) for _ in range(chance.choice(setting.asserts))]
    return [(one, own(*one)) for one in given if misunderstood or own(*one) == true(*one)]


def tests_text(name: str, asks: Sequence[tuple[Given, object]], made_by: int | None) -> str:
    lines = [f"assert answer({name}, {given!r}) == {said!r}, {given!r}" for given, said in asks]
    if made_by is not None:
        lines.append(f"assert solution.made_by == {made_by}")
    return "\n".join([_HEAD.format(name=name), *lines, ""])


_HEAD = """\
import sys
sys.path.insert(0, ".")
import solution
from solution import {name}

def answer(function, given):
    try:
        return function(*given)
    except Exception as error:
        return type(error).__name__
"""


def answers(source: str) -> Call:
    """The function in it; what it raises is an answer, too, and so is not ending."""
    left = 0

    def tick() -> bool:
        nonlocal left
        left -= 1
        if left < 0:
            raise TimeoutError
        return True

    space: dict[str, Any] = {"_tick": tick}
    tree = ast.parse(source)
    for node in ast.walk(tree):
        if isinstance(node, ast.While):
            node.test = ast.BoolOp(ast.And(), [ast.Call(ast.Name("_tick", ast.Load()), [], []), node.test])
    exec(compile(ast.fix_missing_locations(tree), "solution", "exec"), space)
    (function,) = (one for name, one in space.items() if callable(one) and not name.startswith("_"))

    def call(*given: object) -> object:
        nonlocal left
        left = _MOST_STEPS
        try:
            return function(*given)
        except Exception as error:
            return type(error).__name__

    return call


def pool_of(function: Function, chance: random.Random) -> Pool:
    true = answers(function.source)
    hidden = [function.inputs(chance) for _ in range(_HIDDEN)]
    wanted = [true(*given) for given in hidden]
    right, wrong = [ast.unparse(ast.parse(function.source))], dict[str, str]()
    once = list(mutants(function.source))
    for source in dict.fromkeys((*once, *twice_changed(once, chance))):
        own = answers(source)
        if all(own(*given) == true(*given) for given in function.examples):
            said = [own(*given) for given in hidden]
            if said == wanted:
                right.append(source)
            elif "TimeoutError" not in said:
                wrong.setdefault(repr(said), source)
    return Pool(function, right, list(wrong.values()))


_COMPARED: Mapping[type, tuple[type[ast.cmpop], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt), ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,),
    ast.In: (ast.NotIn,), ast.NotIn: (ast.In,),
}  # fmt: skip
_COUNTED: Mapping[type, tuple[type[ast.operator], ...]] = {
    ast.Add: (ast.Sub,), ast.Sub: (ast.Add,), ast.Mult: (ast.Add, ast.FloorDiv),
    ast.FloorDiv: (ast.Mult, ast.Mod), ast.Mod: (ast.FloorDiv,),
}  # fmt: skip
_NAMES = {"min": "max", "max": "min", "lower": "upper", "upper": "lower", "lstrip": "strip",
          "strip": "lstrip", "append": "extend", "any": "all", "all": "any"}  # fmt: skip


def mutants(source: str) -> Iterator[str]:
    """Each differs from it in one place."""
    places = len(list(ast.walk(ast.parse(source))))
    found = (mutant(source, place, way) for place in range(places) for way in range(3))
    return filter(None, dict.fromkeys(found))


def mutant(source: str, place: int, way: int) -> str | None:
    """Changed at the node of that number in one of three ways; None where there is none."""
    tree = ast.parse(source)
    nodes = list(ast.walk(tree))
    if place >= len(nodes) or not _changed(nodes[place], way):
        return None
    return ast.unparse(ast.fix_missing_locations(tree))


def twice_changed(once: Sequence[str], chance: random.Random) -> Iterator[str]:
    for _ in range(_TWICE_TRIED):
        found = mutant(chance.choice(once), chance.randrange(200), chance.randrange(3))
        if found is not None:
            yield found


def _changed(node: ast.AST, way: int) -> bool:
    """One of three ways, where the node has so many."""
    if isinstance(node, ast.Compare):
        compared = _COMPARED.get(type(node.ops[0]), ())
        if way < len(compared):
            node.ops[0] = compared[way]()
            return True
    elif isinstance(node, ast.BinOp | ast.AugAssign):
        others = _COUNTED.get(type(node.op), ())
        if way < len(others):
            node.op = others[way]()
            return True
    elif isinstance(node, ast.Constant) and type(node.value) is int:
        node.value += (1, -1, 10)[way]
        return True
    elif isinstance(node, ast.BoolOp) and way == 0:
        node.op = ast.Or() if isinstance(node.op, ast.And) else ast.And()
        return True
    elif isinstance(node, ast.If | ast.While) and way == 0:
        node.test = ast.UnaryOp(ast.Not(), node.test)
        return True
    elif isinstance(node, ast.If) and way == 1:
        node.test = ast.Constant(False)
        return True
    elif isinstance(node, ast.Attribute) and way == 0 and node.attr in _NAMES:
        node.attr = _NAMES[node.attr]
        return True
    elif isinstance(node, ast.Name) and way == 0 and node.id in _NAMES:
        node.id = _NAMES[node.id]
        return True
    elif isinstance(node, ast.Slice | ast.Subscript) and way < 2:
        return _sliced(node, way)
    elif isinstance(node, ast.If | ast.For | ast.While) and way == 2:
        node.body = [*node.body[:-1], ast.Pass()]
        return True
    elif isinstance(node, ast.UnaryOp) and way == 0 and isinstance(node.op, ast.Not):
        node.op = ast.UAdd()
        return True
    return False


def _sliced(node: ast.Slice | ast.Subscript, way: int) -> bool:
    """Without its begin or its end."""
    if not isinstance(node, ast.Slice) or (node.lower, node.upper)[way] is None:
        return False
    setattr(node, ("lower", "upper")[way], None)
    return True


@dataclass(frozen=True)
class Round:
    """One task: who was right, the order of `af compare`, and what it went by."""

    right: tuple[bool, ...]
    order: tuple[int, ...]
    passed: Matrix

    @property
    def is_won(self) -> bool:
        return self.right[self.order[0]]


def played(farm: Farm, pool: Pool, given: Sequence[Solution]) -> Round:
    """The repository is one with the function's examples; each solution is a commit on it."""
    name, true = pool.function.name, answers(pool.function.source)
    examples = tests_text(name, [(one, true(*one)) for one in pool.function.examples], None)
    base = _commit(farm, "HEAD", {"tests/test_examples.py": examples})
    candidates = []
    for number, one in enumerate(given):
        files = {"solution.py": f"{one.source}\nmade_by = {number}\n"}
        if one.asks:
            files[f"tests/test_{number}.py"] = tests_text(name, one.asks, number if one.brittle else None)
        tip = _commit(farm, base, files)
        tree = run_git(farm.root, "rev-parse", f"{tip}^{{tree}}").strip()
        candidates.append(Candidate(str(number), tip, base, tree))
    checks = declared_checks(farm)
    proven = [one for one in candidates if verdict_of(farm, one.tip, checks).passed]
    assert proven == candidates, "its own tests are about its own code"
    rows = cross_tests(farm, candidates, checks, reuse="all", tell=lambda text: None)
    return _ended(given, {(row.tests_of, row.on): row.passed for row in rows})


def played_in_memory(given: Sequence[Solution]) -> Round:
    called = [answers(one.source) for one in given]

    def passes(author: Solution, on: int) -> bool:
        return not author.brittle and all(called[on](*asked) == said for asked, said in author.asks)

    passed = {
        (str(number), str(on)): passes(author, on)
        for number, author in enumerate(given)
        for on in range(len(given))
        if author.asks and on != number
    }
    return _ended(given, passed)


def _ended(given: Sequence[Solution], passed: Matrix) -> Round:
    sizes = [one.source.count("\n") for one in given]
    places = ranked([Standing(str(number), lines=size) for number, size in enumerate(sizes)], passed)
    return Round(tuple(one.is_right for one in given), tuple(int(place.id) for place in places), passed)


def _commit(farm: Farm, base: str, files: Mapping[str, str]) -> str:
    entries = {
        path: Entry("100644", run_git(farm.root, "hash-object", "-w", "--stdin", input=text.encode()).strip())
        for path, text in files.items()
    }
    return loose_commit(farm.repository, overlaid_tree(farm.repository, base, entries), base)


def main() -> Rows:
    chance = random.Random(300)
    pools = [pool_of(function, chance) for function in FUNCTIONS]
    pools = [pool for pool in pools if len(pool.wrong) >= _LEAST_MISTAKES]
    with stage(files=1) as made:
        os.environ.update(made.env)
        (made.repository / "agent-farm.toml").write_text(f"[check]\ncommand = '''{_CHECK}'''\n")
        remember(made.repository, open_settings(made.repository).asking())
        farm = open_farm(made.repository)
        rounds = [played(farm, pool, solutions(pool, USUAL, chance)) for pool in _turns(pools)]
    yield from _rows(rounds, pools)
    for setting in HARDER:
        others = [played_in_memory(solutions(pool, setting, chance)) for pool in _turns(pools)]
        yield f"in memory, {setting.name}", _won(_with_a_right_one(others))
    if (share := fmean(one.is_won for one in _with_a_right_one(rounds))) < BAR:
        sys.exit(f"A right one came first in {share:.1%}")


def _turns(pools: Sequence[Pool]) -> Iterator[Pool]:
    return (pools[number % len(pools)] for number in range(TASKS))


def _with_a_right_one(rounds: Sequence[Round]) -> list[Round]:
    return [one for one in rounds if any(one.right)]


def _won(rounds: Sequence[Round]) -> str:
    return f"{fmean(one.is_won for one in rounds):.1%} of {len(rounds)}" if rounds else "none"


def _rows(rounds: Sequence[Round], pools: Sequence[Pool]) -> list[tuple[str, str]]:
    some = _with_a_right_one(rounds)
    mixed = [one for one in some if not all(one.right)]
    seen = [green for one in rounds for green in one.passed.values()]
    mutants = sum(len(pool.right) - 1 + len(pool.wrong) for pool in pools)
    return [
        ("functions / mutants that pass the examples", f"{len(pools)} / {mutants}"),
        ("runs of one's tests on another's code / red", f"{len(seen)} / {seen.count(False)}"),
        ("a right one comes first, where there is one", f"{_won(some)} (bar: {BAR:.0%})"),
        ("  where there are wrong ones, too", _won(mixed)),
        ("    the same by chance", f"{fmean(fmean(one.right) for one in mixed):.1%}"),
        ("    1 of 3 is right", _won([one for one in mixed if sum(one.right) == 1])),
        ("    2 of 3 are right", _won([one for one in mixed if sum(one.right) == 2])),
    ]
