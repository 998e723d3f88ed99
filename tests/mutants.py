"""`make mutants`: change the code in one place at a time, and see whether a test notices.

A mutant is a module with one comparison, sum, constant, condition or statement changed. It is
killed when a test of that module fails, or when the tests take far too long. What survives is
either a hole in the tests or changes nothing; `tests/equivalent.py` lists the latter with a reason.

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

from tests.equivalent import EQUIVALENT

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
    "kuhn_bridge/shimmy.py": "shimmy",
    "algorithms/exact/tree.py": "tree values",
    "algorithms/exact/values.py": "values closed_form losses",
    "algorithms/exact/fast.py": "fast",
    "algorithms/exact/cfr.py": "cfr sampling solve",
    "algorithms/exact/sampling.py": "sampling",
    "algorithms/exact/linear_program.py": "closed_form",
    "algorithms/exact/elimination.py": "elimination dominance",
    "algorithms/exact/kuhn.py": "closed_form",
    "algorithms/exact/losses.py": "losses",
    "algorithms/exact/simulation.py": "simulate",
    "algorithms/exact/solving.py": "solve sampling",
    "algorithms/policies/policy.py": "game_policy",
    "algorithms/policies/archive.py": "strangers sb3",
    "algorithms/policies/sb3.py": "strangers sb3",
    "algorithms/policies/onnx.py": "strangers sb3",
    "algorithms/policies/sources.py": "sources",
    "algorithms/learning/average.py": "callback",
    "algorithms/learning/board.py": "selfplay hands",
    "algorithms/learning/faces.py": "selfplay",
    "algorithms/learning/steering.py": "callback",
    "algorithms/learning/selfplay.py": "selfplay checkpoint",
    "algorithms/learning/hands.py": "hands",
    "algorithms/learning/checkpoint.py": "checkpoint",
    "algorithms/support/files.py": "support",
    "algorithms/support/checksummed.py": "support",
    "algorithms/support/server.py": "play",
    "parity/sides.py": "bridge parity",
    "parity/candidate.py": "parity",
}

FOR_ALL = "tests/test_house.py::test_values_are_frozen_and_take_no_other_names"

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
        if any(part in mutant.told for part in EQUIVALENT.get(module, ())):
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
