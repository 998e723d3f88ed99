"""`make mutants`: change the code in one place at a time, and see whether a test notices.

A mutant is a module with one comparison, sum, constant, condition or statement changed. It is
killed when a test of that module fails, or when the tests take far too long. What survives is
either a hole in the tests or changes nothing; `EQUIVALENT` lists the latter with a reason.

A mutant does what it likes, so no test writes to a file that it did not make, devices included.
The tests run in a copy of the project in build/mutants, each mutant in a process forked from one
that has the heavy libraries already, the tests that are quick or have killed before first.
Verdicts are kept there too: the next call leaves out what is known (`--again`: but not the living).
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import hashlib
import importlib
import json
import os
import random
import re
import resource
import shutil
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest
import torch
from hypothesis import HealthCheck, Phase, settings
from numba.core.caching import _SourceFileBackedLocatorMixin

ROOT = Path(__file__).parent.parent
WORK = ROOT / "build" / "mutants"
COPY, RESULTS = WORK / "copy", WORK / "results.txt"
OUTPUT, SAID = WORK / "output.txt", WORK / "said.json"
MEMORY = 8 * 2**30  # bytes, for tests that would fill it
OWN = ("tests", "kuhn_bridge", "algorithms", "parity")

# What guards each module, the quickest first.
TESTS = {
    "kuhn_bridge/rules.py": "rules state bridge",
    "kuhn_bridge/encoding.py": "state kuhn_v0",
    "kuhn_bridge/state.py": "state rules",
    "kuhn_bridge/bridge.py": "bridge policy",
    "kuhn_bridge/policy.py": "policy",
    "kuhn_bridge/kuhn_v0.py": "kuhn_v0 conformance/test_pettingzoo.py",
    "kuhn_bridge/openspiel.py": "openspiel policy conformance/test_openspiel.py",
    "algorithms/exact/tree.py": "tree values",
    "algorithms/exact/values.py": "values closed_form losses",
    "algorithms/exact/fast.py": "fast",
    "algorithms/exact/cfr.py": "cfr sampling",
    "algorithms/exact/sampling.py": "sampling",
    "algorithms/exact/linear_program.py": "closed_form",
    "algorithms/exact/elimination.py": "elimination dominance",
    "algorithms/policies/policy.py": "game_policy",
    "algorithms/policies/archive.py": "strangers sb3",
    "algorithms/policies/sb3.py": "strangers sb3",
    "algorithms/policies/onnx.py": "strangers sb3",
    "algorithms/learning/selfplay.py": "selfplay checkpoint",
    "algorithms/learning/hands.py": "hands",
    "algorithms/learning/checkpoint.py": "checkpoint",
    "algorithms/support/files.py": "support",
    "algorithms/support/sealed.py": "support",
    "algorithms/support/server.py": "play",
    "parity/sides.py": "bridge parity",
    "parity/candidate.py": "parity",
}

FOR_ALL = "tests/test_house.py::test_values_are_frozen_and_take_no_other_names"

BOUND, RARE = "a bound of another size is one too", "no sum, no draw is exactly there"

# Survivors that change nothing: a module, a part of what is told of the mutant, and why.
EQUIVALENT = (
    ("kuhn_bridge/rules.py", "cards[1] [> -> >=] cards[0]", "no two cards are alike"),
    ("kuhn_bridge/rules.py", "min(len(cards), [3 ->", "four cards are as wrong as three"),
    ("kuhn_bridge/rules.py", "seed = -[1 ->", "any seed below 0 is refused"),
    ("kuhn_bridge/state.py", "compare=[False -> True]", "it follows from cards and letters"),
    ("kuhn_bridge/bridge.py", "LONGEST + [1 ->", "reading one more move refuses as well"),
    ("kuhn_bridge/policy.py", "MAX_BYTES + [1 ->", "one more byte is too many as well"),
    ("kuhn_bridge/policy.py", "[2 -> (2 + 1)] * half + 2]", "a slice ends where the row does"),
    ("kuhn_bridge/policy.py", "[<= -> <] PERCENT_TOLERANCE", RARE),
    ("kuhn_bridge/policy.py", "[> -> >=] ROW_SUM_TOLERANCE", RARE),
    ("kuhn_bridge/policy.py", "[12 -> (12 + 1)])", "that rounds the same errors away"),
    ("kuhn_bridge/policy.py", "MAX_LENGTH = [10_000_000", BOUND),
    ("kuhn_bridge/policy.py", "[> -> >=] MAX_LENGTH", BOUND),
    ("kuhn_bridge/policy.py", "depth: int = [2 ->", "no table is so deep"),
    ("kuhn_bridge/policy.py", "(depth [> -> >=] 0", "no table is so deep"),
    ("kuhn_bridge/policy.py", '"__array__") [or -> and]', "an array is then looked at twice"),
    ("kuhn_bridge/kuhn_v0.py", "[super().__init__() -> pass]", "PettingZoo does nothing there"),
    ("kuhn_bridge/kuhn_v0.py", "max_iter: int = [2 ->", "as good as endless, too"),
    ("kuhn_bridge/kuhn_v0.py", "max_iter: int = 2**[63 ->", "as good as endless, too"),
    ("kuhn_bridge/kuhn_v0.py", "hand.returns[1] [> -> >=] 0", "nobody ends with 0"),
    ("kuhn_bridge/openspiel.py", "apply_action(action if [ours ->", "IDs agree there"),
    ("algorithms/exact/tree.py", "reshape(-[1 ->", "numpy takes any number below 0"),
    ("algorithms/exact/tree.py", "self.key_bytes = [0 ->", "one byte among gigabytes"),
    ("algorithms/exact/tree.py", "max([4 ->", "columns that nobody reads"),
    ("algorithms/exact/values.py", "return -[1 ->", "any number below 0 says that all is right"),
    ("algorithms/exact/values.py", "return -[1.0 ->", "any number below 0 says what is wrong"),
    ("algorithms/exact/values.py", "SIDE_BY_SIDE = ", "a batch is measured in other portions"),
    ("algorithms/exact/values.py", "return [4 ->", "room that nobody writes to"),
    ("algorithms/exact/values.py", "reshape(-[1 ->", "numpy takes any number below 0"),
    ("algorithms/exact/values.py", "len(likely)) [- -> +]", "slots run out before the bound does"),
    ("algorithms/exact/values.py", "stakes[-1, [0 ->", "every column has the largest return"),
    ("algorithms/exact/fast.py", "heard[chance] [* ->", "which hands share a group: only speed"),
    ("algorithms/exact/fast.py", "tree.num_slots + [1 ->", "a cell that nobody reads"),
    ("algorithms/exact/fast.py", "(players, [1 ->", "columns that nobody reads"),
    ("algorithms/exact/fast.py", "level_of[parent] + [1 ->", "the order is the same"),
    ("algorithms/exact/fast.py", "parents = np.append([0 ->", "nothing is above the root"),
    ("algorithms/exact/fast.py", "keep_positive < [1 ->", "times 1 changes nothing"),
    ("algorithms/exact/fast.py", "keep_negative [< -> <=] 1", "times 1 changes nothing"),
    ("algorithms/exact/fast.py", "[!= -> ==] owner", "which hands share a group: only speed"),
    ("algorithms/exact/fast.py", "regret[i] [>= -> >] 0", "0 is 0 times either factor"),
    ("algorithms/exact/fast.py", "nodes[chance]] + [1 ->", "which hands share a group: only speed"),
    ("algorithms/exact/fast.py", "[put(worth, player, zero) ->", "a sum that nobody reads"),
    ("algorithms/exact/fast.py", "np.tile(np.append([0 ->", "the next line writes that column"),
    ("algorithms/exact/fast.py", "[self._advance(0) ->", "the first run begins with the same"),
    ("algorithms/exact/fast.py", "max(initial=[0 ->", "a larger factor numbers the same"),
    ("algorithms/exact/fast.py", "filled [>= -> >]", "lanes or none: only speed"),
    ("algorithms/exact/cfr.py", "(1.0, 1.0, 0.0, [0.0 ->", "all regrets are still 0"),
    ("algorithms/exact/cfr.py", "([1.0 -> (1.0 + 1)], 1.0,", "all regrets are still 0"),
    ("algorithms/exact/cfr.py", "(1.0, [1.0 ->", "all regrets are still 0"),
    ("algorithms/exact/cfr.py", "[raise NotImplementedError ->", "every solver has its own"),
    ("algorithms/exact/cfr.py", "(rows >= [0 -> (0 + 1)], tree.parent", "pruning less is the same"),
    ("algorithms/exact/cfr.py", "sums > 0, sums, [1 ->", "that quotient is not taken"),
    ("algorithms/exact/cfr.py", "rows[:[- -> ]1]", "smaller groups add up to the same"),
    ("algorithms/exact/cfr.py", "initial=[0 ->", "who never decides is then looked at in vain"),
    ("algorithms/exact/sampling.py", "left [< -> <=] 0", RARE),
    ("algorithms/exact/sampling.py", "[< -> <=] EXPLORATION", RARE),
    ("algorithms/exact/sampling.py", "generate_state([1 ->", "only the first is read"),
    ("algorithms/exact/sampling.py", "first_child[node + [1 ->", "a draw ends before the last"),
    ("algorithms/exact/sampling.py", "len(layout[[1 ->", "both have one entry per node"),
    ("algorithms/exact/linear_program.py", "sums [> -> >=] 1e-12", RARE),
    ("algorithms/exact/linear_program.py", "[> -> >=] 1e-9", RARE),
    ("algorithms/exact/linear_program.py", "(len(rows) + [1 ->", "an empty row asks for nothing"),
    ("algorithms/exact/elimination.py", "max([1.0 ->", "a tolerance of another size is one too"),
    ("algorithms/exact/elimination.py", "MAX_STRATEGIES = ", BOUND),
    ("algorithms/policies/policy.py", "[<= -> <] ROW_SUM_TOLERANCE", RARE),
    ("algorithms/policies/policy.py", "MAX_CONTAINERS = ", BOUND),
    ("algorithms/policies/archive.py", "len(size) > [8 ->", BOUND),
    ("algorithms/policies/archive.py", "MAX_JSON_VALUES = ", BOUND),
    ("algorithms/policies/archive.py", "[> -> >=] MAX_JSON_VALUES", BOUND),
    ("algorithms/policies/archive.py", "member.read(2**[20 ->", "other portions, the same whole"),
    ("algorithms/policies/archive.py", "member.read(2[** ->", "other portions, the same whole"),
    ("algorithms/policies/archive.py", "(argument or 0) [> -> >=]", "torch writes no such memo"),
    ("algorithms/policies/archive.py", "token[0][:[1 ->", "no string begins like a mark"),
    ("algorithms/policies/onnx.py", "MAX_BYTES = 256 * 2**[20 ->", BOUND),
    ("algorithms/policies/onnx.py", "MAX_BYTES = [256 ->", BOUND),
    ("algorithms/policies/onnx.py", "BATCH = ", "rows are run in other portions"),
    ("algorithms/policies/onnx.py", "read(rows * actions * [8 ->", "the worker sends no more"),
    ("algorithms/policies/onnx.py", "shape[[- -> ]1] == size", "only pairs come here"),
    ("algorithms/policies/onnx.py", "[worker.kill() ->", "it is killed a little later"),
    ("algorithms/policies/onnx.py", "LONGEST_LINE = [2 ->", BOUND),
    ("algorithms/policies/onnx.py", "LONGEST_LINE = 2**[16 ->", BOUND),
    ("algorithms/policies/onnx.py", "CLOCK_SECONDS = [20 ->", BOUND),
    ("algorithms/policies/sb3.py", "[4 -> (4 + 1)] * MAX_LAYERS", BOUND),
    ("algorithms/policies/sb3.py", "[> -> >=] 4 * MAX_LAYERS", BOUND),
    ("algorithms/policies/sb3.py", "BATCH = ", "rows are shown in other portions"),
    ("algorithms/policies/sb3.py", "[:[20 ->", "no number of actions is so long"),
    ("algorithms/policies/sb3.py", "observations[:[1 ->", "one more row is tried"),
    ("algorithms/policies/sb3.py", "[:[100 ->", "one letter more of a message"),
    ("algorithms/learning/selfplay.py", "[False -> True]) -> spaces.Box", "all callers say"),
    ("algorithms/learning/selfplay.py", "first - 1, [0 ->", "a reset says whose seat it is"),
    ("algorithms/learning/selfplay.py", "[<= -> <] draw", RARE),
    ("algorithms/learning/selfplay.py", "high = min([0.0 ->", "every game shows a 0 somewhere"),
    ("algorithms/learning/hands.py", "(own < [2 ->", "the longer way deals the same"),
    ("algorithms/learning/hands.py", "(own [< -> <=] 2", "the longer way deals the same"),
    ("algorithms/learning/hands.py", "(own < 2**[32 ->", "the longer way deals the same"),
    ("algorithms/learning/hands.py", "_LOW) [>= -> >] rules.own", RARE),
    ("algorithms/learning/hands.py", "own[i] [< -> <=] 1]", "a cell of exactly 1 is its own"),
    ("algorithms/learning/hands.py", "shape[1] < [128 ->", "128 IDs from 0 fit as well"),
    ("algorithms/learning/hands.py", "2[** -> *]63", "any start of the draws is as good"),
    ("algorithms/learning/hands.py", "draws > [1 ->", "where chance acts later there are more"),
    ("algorithms/learning/hands.py", "else np.uint64([0 ->", "what is looked up there is not used"),
    ("algorithms/learning/hands.py", "CHANCES = 0, 1, [2 ->", "a name for another number"),
    ("algorithms/learning/hands.py", "self._choices[[0 ->", "both are of one type"),
    ("algorithms/learning/hands.py", "mixed(state [+ -> -]", "other draws are as good as any"),
    ("algorithms/learning/hands.py", "large] = [1.0 ->", "more than the whole cell is all of it"),
    ("algorithms/learning/hands.py", "((0, [0 ->", "rows that nobody reads"),
    ("algorithms/learning/hands.py", "draws [> -> >=] 1", "no hand waits for chance then"),
    ("algorithms/learning/hands.py", "2**[63 ->", "any start of the draws is as good"),
    ("algorithms/learning/hands.py", "rules.chance[node] [<= -> <]", RARE),
    ("algorithms/learning/hands.py", "size=[1 ->", "only the first is read"),
    ("algorithms/learning/hands.py", "shape[1] [< -> <=] 128", "128 IDs from 0 fit as well"),
    ("algorithms/learning/hands.py", "own[i] [>= -> >] 1]", "a cell of exactly 1 is its own"),
    ("algorithms/learning/hands.py", "own[j] [< -> <=] 1", "a cell of exactly 1 shares nothing"),
    ("algorithms/learning/hands.py", "self._advance([1 ->", "later draws are as good as any"),
    ("algorithms/support/files.py", "_PART = 2", "files are read in other portions"),
    ("algorithms/support/files.py", '"O_NONBLOCK", [0 ->', "it is never missing but on Windows"),
    ("algorithms/support/files.py", "[raise OSError(errno.ENOSYS", "that is Windows"),
    ("algorithms/support/sealed.py", "MAX_BYTES = [2 ->", BOUND),
    ("algorithms/support/sealed.py", "2**[30 ->", BOUND),
    ("parity/candidate.py", "indent=[2 ->", "JSON reads the same"),
    ("parity/candidate.py", "legal, ([0 -> (0 + 1)], 0)", "only the end's returns are compared"),
    ("parity/candidate.py", "legal, (0, [0 ->", "only the end's returns are compared"),
    ("parity/candidate.py", "LUCK = [6 ->", BOUND),
    ("parity/sides.py", "n in (0, 1, [2 ->", "a deal has no more than two cards"),
    ("algorithms/support/server.py", "timeout = [30 ->", BOUND),
    ("algorithms/support/server.py", "wbufsize = ", "Nagle is off too: either spares the wait"),
)

_SWAPS = {
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
    ast.Eq: ("==", "!="),
    ast.NotEq: ("!=", "=="),
    ast.Is: ("is", "is not"),
    ast.IsNot: ("is not", "is"),
    ast.In: ("in", "not in"),
    ast.NotIn: ("not in", "in"),
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"),
    ast.Pow: ("**", "*"),
    ast.BitAnd: ("&", "|"),
    ast.BitOr: ("|", "&"),
    ast.And: ("and", "or"),
    ast.Or: ("or", "and"),
}


@dataclass(frozen=True, slots=True)
class Mutant:
    """One change: the text from `start` to `end` becomes `text`."""

    line: int
    start: int
    end: int
    text: str
    told: str  # the line, with [what was -> what is]
    compiled: bool  # kernels may contain it

    def applied(self, source: bytes) -> bytes:
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: str) -> Iterator[Mutant]:
    """Every change that is made to a module."""
    tree = ast.parse(source)
    lines = [0]
    for line in source.splitlines(keepends=True):
        lines.append(lines[-1] + len(line.encode()))
    raw = source.encode()

    def at(line: int, column: int) -> int:
        return lines[line - 1] + column

    def made(line: int, start: int, end: int, text: str) -> Mutant:
        first = raw[lines[line - 1] : start].decode().lstrip()
        last = raw[end : lines[line]].decode().rstrip()
        was = " ".join(raw[start:end].decode().split())
        told = f"{first}[{was} -> {text}]{last}"
        return Mutant(line, start, end, text, told, line not in interpreted)

    skipped = set(_skipped(tree))
    interpreted = set(_interpreted(tree))
    for node in ast.walk(tree):
        if id(node) in skipped or not hasattr(node, "lineno"):
            continue
        start, end = at(node.lineno, node.col_offset), at(node.end_lineno, node.end_col_offset)
        for left, operator, right in _operations(node):
            lower, upper = (
                at(left.end_lineno, left.end_col_offset),
                at(right.lineno, right.col_offset),
            )
            was, becomes = _SWAPS.get(type(operator), ("", ""))
            place = raw.find(was.encode(), lower, upper) if was else -1
            if place >= 0:
                yield made(left.end_lineno, place, place + len(was), becomes)
        if isinstance(node, ast.Constant) and isinstance(node.value, bool):
            yield made(node.lineno, start, end, str(not node.value))
        elif isinstance(node, ast.Constant) and isinstance(node.value, (int, float)):
            yield made(node.lineno, start, end, f"({node.value!r} + 1)")
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, (ast.Not, ast.Invert, ast.USub)):
            operand = at(node.operand.lineno, node.operand.col_offset)
            yield made(node.lineno, start, operand, "")
        elif isinstance(node, (ast.If, ast.IfExp, ast.While)):
            test = node.test
            first, last = (
                at(test.lineno, test.col_offset),
                at(test.end_lineno, test.end_col_offset),
            )
            yield made(test.lineno, first, last, f"not ({raw[first:last].decode()})")
        elif isinstance(node, (ast.Raise, ast.AugAssign)) or (
            isinstance(node, ast.Expr) and isinstance(node.value, ast.Call)
        ):
            yield made(node.lineno, start, end, "pass")


def _interpreted(tree: ast.AST) -> Iterator[int]:
    """The lines that no kernel contains: of functions that are not compiled."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef):
            marks = {getattr(decorator, "id", "") for decorator in node.decorator_list}
            if not marks & {"compiled", "part"}:
                yield from range(node.body[0].lineno, node.end_lineno + 1)


def _operations(node: ast.AST) -> Iterator[tuple[ast.expr, ast.AST, ast.expr]]:
    if isinstance(node, ast.Compare):
        yield from zip([node.left, *node.comparators], node.ops, node.comparators, strict=False)
    elif isinstance(node, ast.BinOp):
        yield node.left, node.op, node.right
    elif isinstance(node, ast.BoolOp):
        yield from ((a, node.op, b) for a, b in zip(node.values, node.values[1:], strict=False))


def _skipped(tree: ast.AST) -> Iterator[int]:
    """What does nothing when it runs: annotations, messages of errors, type aliases."""
    for node in ast.walk(tree):
        parts: list[ast.AST | None] = []
        if isinstance(node, ast.AnnAssign):
            parts = [node.annotation]
        elif _is_never_run(node):
            parts = [node]
        elif isinstance(node, ast.FunctionDef):
            every = (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs)
            parts = [node.returns, *(argument.annotation for argument in every)]
        elif isinstance(node, ast.JoinedStr):
            parts = [node]
        for part in parts:
            if part is not None:
                yield from map(id, ast.walk(part))


def _is_never_run(node: ast.AST) -> bool:
    if isinstance(node, ast.FunctionDef):
        return any(ast.unparse(decorator) == "overload" for decorator in node.decorator_list)
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: it only checks ourselves
    never = ("TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(node, ast.If) and ast.unparse(node.test) in never


class _Watch:
    """A plugin of pytest: the cheapest tests first; notes how long each took and what failed."""

    def __init__(self, costs: dict[str, float]) -> None:
        self.costs = costs
        self.seconds: Counter[str] = Counter()
        self.failed: list[str] = []

    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        items.sort(key=lambda item: self.costs.get(item.nodeid, 0))

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        self.seconds[report.nodeid] += report.duration
        if report.failed:
            self.failed.append(report.nodeid)


class Tests:
    """The tests of one module, run on the copy."""

    def __init__(self, module: str) -> None:
        names = TESTS[module].split()
        named = [f"tests/{n}" if n.endswith(".py") else f"tests/test_{n}.py" for n in names]
        self.paths = [*named, FOR_ALL]
        self.seconds: dict[str, float] = {}
        self.kills: Counter[str] = Counter()
        self.used, self.limit = 0.0, 600.0  # seconds of the processor
        self.pass_at_first = self.run() == "alive"
        self.limit = self.used + 30  # to compile takes less than that
        said = json.loads(SAID.read_text())
        self.seconds = said["seconds"]
        for name in said["modules"]:  # so that no mutant has to
            with contextlib.suppress(ImportError):
                importlib.import_module(name)

    def run(self) -> str:
        """`alive` if all pass, `killed` if one fails, `slow` if they take far too long."""
        result = self._once()
        timed_out = result == "killed" and b"from pytest-timeout" in OUTPUT.read_bytes()
        return self._once() if timed_out else result  # the machine may have paused

    def _once(self) -> str:
        child = os.fork()
        if child == 0:
            self._run_here()
        _, status, used = os.wait4(child, 0)
        self.used = used.ru_utime + used.ru_stime
        with contextlib.suppress(ProcessLookupError):
            os.killpg(child, signal.SIGKILL)  # what it started and left
        if os.WIFSIGNALED(status) and os.WTERMSIG(status) == signal.SIGXCPU:
            return "slow"
        self.kills.update(json.loads(SAID.read_text())["failed"])
        return "killed" if status else "alive"

    def _run_here(self) -> None:
        os.setsid()
        resource.setrlimit(resource.RLIMIT_DATA, (MEMORY, MEMORY))
        resource.setrlimit(resource.RLIMIT_CPU, (int(self.limit), int(self.limit) + 5))
        output = os.open(OUTPUT, os.O_RDWR | os.O_CREAT | os.O_TRUNC)
        for stream, file in enumerate((os.open(os.devnull, os.O_RDONLY), output, output)):
            os.dup2(file, stream)
        os.chdir(COPY)
        os.environ |= {"PYTHONPATH": str(COPY), "PYTHONDONTWRITEBYTECODE": "1"}
        sys.path[:] = [str(COPY), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
            del sys.modules[name]
        watch = _Watch({name: s / (1 + self.kills[name]) for name, s in self.seconds.items()})
        options = ["-xq", "--assert=plain", "-pno:cacheprovider", "--timeout=60"]
        options += [f"--basetemp={WORK / 'tmp'}", "--hypothesis-profile=mutants"]
        SAID.write_text('{"seconds": {}, "failed": [], "modules": []}')
        failed = pytest.main([*options, *self.paths], [watch])
        others = [name for name in sys.modules if name.partition(".")[0] not in (*OWN, "__main__")]
        said = {"seconds": watch.seconds, "failed": watch.failed, "modules": others}
        SAID.write_text(json.dumps(said))
        os._exit(int(failed))


def _prepare() -> None:
    """Copy the project and load what every process shall have already."""
    unwanted = (".*", "build", "dist", "runs", "node_modules", "__pycache__", "*.egg-info")
    ignore = shutil.ignore_patterns(*unwanted)
    shutil.copytree(ROOT, COPY, ignore=ignore, symlinks=True, dirs_exist_ok=True)
    sys.dont_write_bytecode = True
    torch.set_num_threads(1)
    # Always the same examples, no time spent on the smallest one, and a busy machine is no failure.
    settings.register_profile(
        "mutants",
        derandomize=True,
        deadline=None,
        phases=(Phase.explicit, Phase.generate),
        suppress_health_check=(HealthCheck.too_slow,),
    )
    # Kernels outlive a changed file: `_without_kernels` alone says which are out of date.
    _SourceFileBackedLocatorMixin.get_source_stamp = lambda self: "unchanged"


def _kernels(module: str, suffix: str = "") -> list[Path]:
    """The compiled code of a module and of all that import from it, for that contains it."""
    stale, found = set(), {module}
    while found - stale:
        stale |= found
        names = [re.escape(name.removesuffix(".py").replace("/", ".")) for name in stale]
        wanted = re.compile(rf"^ *from ({'|'.join(names)}) import", re.MULTILINE)
        every = [path for folder in OWN for path in (COPY / folder).rglob("*.py")]
        found = {str(p.relative_to(COPY)) for p in every if wanted.search(p.read_text())}
    paths = [COPY / name for name in stale]
    places = [(path.parent / "__pycache__", f"{path.stem}.*.nb[ic]{suffix}") for path in paths]
    return [kernel for folder, pattern in places for kernel in folder.glob(pattern)]


@contextlib.contextmanager
def _without_kernels(module: str) -> Iterator[None]:
    """Put compiled code aside, and remove what is compiled meanwhile."""
    for kernel in _kernels(module):
        kernel.rename(f"{kernel}.aside")
    try:
        yield
    finally:
        for kernel in _kernels(module):
            kernel.unlink()
        for kernel in _kernels(module, ".aside"):
            kernel.rename(kernel.with_suffix(""))


def verdict(module: str, mutant: Mutant, source: bytes, tests: Tests) -> str:
    """What the tests say of a mutant."""
    path = COPY / module
    with _without_kernels(module) if mutant.compiled else contextlib.nullcontext():
        path.write_bytes(mutant.applied(source))
        try:
            return tests.run()
        finally:
            path.write_bytes(source)


def main(argv: list[str] | None = None) -> int:
    """Print what survives and a table; exit 1 if fewer than 90% of a module's mutants die."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("modules", nargs="*", help="some of the modules (all)")
    parser.add_argument("--sample", type=int, default=10**9, help="at most so many of each module")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--seconds", type=float, default=10**9, help="begin nothing after so long")
    parser.add_argument("--again", action="store_true", help="try what survived the last time")
    parser.add_argument("--list", action="store_true", help="only say what would be changed")
    options = parser.parse_args(argv)
    options.until = time.monotonic() + options.seconds
    if not options.list:
        _prepare()
    rows = [(module, _module(module, options)) for module in options.modules or TESTS]
    print(
        f"\n{'module':<42}{'mutants':>8}{'killed':>8}{'same':>6}{'alive':>7}{'share':>8}{'left':>7}"
    )
    for name, counts in rows:
        killed, alive = counts["killed"] + counts["slow"], counts["alive"]
        numbers = f"{counts.total():>8}{killed:>8}{counts['same']:>6}{alive:>7}"
        print(f"{name:<42}{numbers}{killed / max(1, killed + alive):>8.0%}{counts['left']:>7}")
    low = [n for n, c in rows if c["alive"] > 0.1 * (c["killed"] + c["slow"] + c["alive"])]
    return int(bool(low))


def _module(module: str, options: argparse.Namespace) -> Counter[str]:
    source = (ROOT / module).read_bytes()
    every = list(mutants(source.decode()))
    random.Random(options.seed).shuffle(every)  # so that those tried first are a sample
    known = _known()
    wanted = () if options.list else ("left", "alive") if options.again else ("left",)
    counts: Counter[str] = Counter()
    tests = None
    for mutant in every[: options.sample]:
        told = f"{module}:{mutant.line}: {mutant.told}"
        key = hashlib.sha256(module.encode() + mutant.applied(source)).hexdigest()[:16]
        result = known.get(key, "left")
        if any(module == name and part in mutant.told for name, part, _ in EQUIVALENT):
            result = "same"
        elif result in wanted and time.monotonic() < options.until:
            tests = tests or Tests(module)
            if not tests.pass_at_first:
                print(f"{module}: its tests fail without any change\n{OUTPUT.read_text()}")
                return counts
            result = verdict(module, mutant, source, tests)
            with RESULTS.open("a") as file:
                file.write(f"{key} {result} {told}\n")
        if result == "alive" or options.list:
            print(told, flush=True)
        counts[result] += 1
    print(f"{module}: {dict(counts)}", flush=True)
    return counts


def _known() -> dict[str, str]:
    """The last verdict on each mutant that was tried."""
    lines = RESULTS.read_text().splitlines() if RESULTS.exists() else []
    return dict(line.split()[:2] for line in lines)


if __name__ == "__main__":
    sys.exit(main())
