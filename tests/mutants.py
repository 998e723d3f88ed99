"""`make mutants`: change the code in one place at a time, and see whether a test notices.

A mutant is a module with one comparison, sum, constant, condition or statement changed. It is
killed when a test of that module fails, or when the tests take far too long. What survives is
either a hole in the tests or changes nothing; `EQUIVALENT` lists the latter with a reason.

A mutant does what it likes, so no test writes to a file that it did not make, devices included.
The tests run in a copy of the project, each mutant in a process forked from one that has the
heavy libraries already, so that a mutant costs little more than its tests.
"""

from __future__ import annotations

import argparse
import ast
import os
import random
import shutil
import signal
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parent.parent
OWN = ("tests", "kuhn_bridge", "algorithms", "parity")
SECONDS = 120  # for the tests of one mutant

# What guards each module, the quickest first.
TESTS = {
    "kuhn_bridge/rules.py": "rules state bridge",
    "kuhn_bridge/encoding.py": "state kuhn_v0",
    "kuhn_bridge/state.py": "state rules",
    "kuhn_bridge/bridge.py": "bridge policy",
    "kuhn_bridge/policy.py": "policy",
    "kuhn_bridge/kuhn_v0.py": "kuhn_v0 conformance/test_pettingzoo.py",
    "kuhn_bridge/openspiel.py": "openspiel policy conformance/test_openspiel.py",
    "algorithms/exact/tree.py": "tree values games",
    "algorithms/exact/values.py": "values closed_form losses",
    "algorithms/exact/cfr.py": "cfr solve",
    "algorithms/exact/sampling.py": "sampling",
    "algorithms/exact/linear_program.py": "closed_form dominance values",
    "algorithms/exact/elimination.py": "dominance",
    "algorithms/policies/policy.py": "game_policy",
    "algorithms/policies/archive.py": "strangers sb3",
    "algorithms/policies/sb3.py": "strangers sb3",
    "algorithms/policies/onnx.py": "strangers sb3",
    "algorithms/learning/selfplay.py": "selfplay checkpoint",
    "algorithms/learning/hands.py": "hands",
    "algorithms/learning/checkpoint.py": "checkpoint",
    "algorithms/support/files.py": "support",
    "algorithms/support/sealed.py": "support",
    "algorithms/support/server.py": "server play",
    "parity/sides.py": "bridge parity",
    "parity/candidate.py": "parity",
}

# Survivors that change nothing: a module, a part of what is told of the mutant, and why.
EQUIVALENT = (
    ("kuhn_bridge/state.py", "compare=False): False -> True", "it follows from cards and letters"),
    ("kuhn_bridge/state.py", "card0 is not card1:: is -> is not", "the slow way finds the same"),
    ("kuhn_bridge/rules.py", "cards[1] > cards[0]): > -> >=", "no two cards are alike"),
    ("kuhn_bridge/bridge.py", "LONGEST + 1", "reading one more move refuses as well"),
    ("kuhn_bridge/policy.py", "PERCENT_TOLERANCE", "no sum of floats is exactly at the bound"),
    ("kuhn_bridge/policy.py", '"__array__") or', "an array is then looked at twice"),
    ("algorithms/support/sealed.py", "MAX_BYTES = 2**30", "a bound of another size is one too"),
    ("kuhn_bridge/policy.py", "for v in values)): > -> >=", "one number more is held as easily"),
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
    told: str  # the line as it was, and what became of it


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
        was = " ".join(raw[start:end].decode().split())
        context = source.splitlines()[line - 1].strip()
        return Mutant(line, start, end, text, f"{context}: {was[:40]} -> {text[:40]}")

    skipped = set(_skipped(tree))
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
        elif isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef)):
            every = (*node.args.args, *node.args.kwonlyargs, *node.args.posonlyargs)
            parts = [node.returns, *(argument.annotation for argument in every)]
        elif isinstance(node, ast.JoinedStr) or _is_never_run(node):
            parts = [node]
        for part in parts:
            if part is not None:
                yield from map(id, ast.walk(part))


def _is_never_run(node: ast.AST) -> bool:
    if isinstance(node, ast.keyword):
        return node.arg == "strict"  # of zip: it only checks ourselves
    never = ("TYPE_CHECKING", "__name__ == '__main__'")
    return isinstance(node, ast.If) and ast.unparse(node.test) in never


def survives(copy: Path, module: str, mutant: Mutant, source: bytes, tests: list[str]) -> bool:
    """Whether the tests pass with the mutant in place."""
    path = copy / module
    path.write_bytes(source[: mutant.start] + mutant.text.encode() + source[mutant.end :])
    try:
        return _passes(copy, tests)
    finally:
        path.write_bytes(source)


def _passes(copy: Path, tests: list[str]) -> bool:
    child = os.fork()
    if child == 0:
        os.setsid()
        nowhere = os.open(os.devnull, os.O_RDWR)
        for stream in (0, 1, 2):
            os.dup2(nowhere, stream)
        os.chdir(copy)
        sys.path[:] = [str(copy), *(path for path in sys.path if path not in ("", str(ROOT)))]
        for name in [name for name in sys.modules if name.partition(".")[0] in OWN]:
            del sys.modules[name]
        import pytest

        quiet = [
            "-x",
            "-q",
            "-p",
            "no:cacheprovider",
            "-W",
            "ignore::pytest.PytestAssertRewriteWarning",
        ]
        os._exit(pytest.main([*quiet, *tests]) != 0)
    until = time.monotonic() + SECONDS
    while time.monotonic() < until:
        done, status = os.waitpid(child, os.WNOHANG)
        if done:
            return status == 0
        time.sleep(0.02)
    os.killpg(child, signal.SIGKILL)
    os.waitpid(child, 0)
    return False


def _tests_of(module: str) -> list[str]:
    names = TESTS[module].split()
    found = [f"tests/{n}" if n.endswith(".py") else f"tests/test_{n}.py" for n in names]
    return [name for name in found if (ROOT / name).exists()]


def _copied(folder: str) -> Path:
    copy = Path(folder) / "copy"
    shutil.copytree(
        ROOT,
        copy,
        ignore=shutil.ignore_patterns(".git", ".venv", "node_modules", "__pycache__", "*.egg-info"),
        symlinks=True,
    )
    return copy


def main(argv: list[str] | None = None) -> int:
    """Print what survives and a table; exit 1 if fewer than 90% of a module's mutants die."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("modules", nargs="*", help="some of the modules (all)")
    parser.add_argument("--sample", type=int, default=10**9, help="at most so many of each module")
    parser.add_argument("--seed", type=int, default=0, help="of the sample")
    parser.add_argument("--list", action="store_true", help="only say what would be changed")
    options = parser.parse_args(argv)
    sys.dont_write_bytecode = True
    import hypothesis, numba, numpy, onnx, pyspiel, pytest, sb3_contrib, scipy.optimize, torch  # noqa: E401, F401, I001

    torch.set_num_threads(1)
    rows = []
    with tempfile.TemporaryDirectory() as folder:
        copy = _copied(folder)
        for module in options.modules or TESTS:
            rows.append(_module(copy, module, options))
    print(f"\n{'module':<42}{'mutants':>8}{'killed':>8}{'same':>6}{'alive':>7}{'share':>8}")
    for name, counts in rows:
        share = counts["killed"] / max(1, counts["killed"] + counts["alive"])
        print(
            f"{name:<42}{counts.total():>8}{counts['killed']:>8}{counts['same']:>6}"
            f"{counts['alive']:>7}{share:>8.0%}"
        )
    low = [n for n, c in rows if c["killed"] < 0.9 * (c["killed"] + c["alive"])]
    return int(bool(low))


def _module(copy: Path, module: str, options: argparse.Namespace) -> tuple[str, Counter[str]]:
    source = (ROOT / module).read_bytes()
    every = list(mutants(source.decode()))
    chosen = random.Random(options.seed).sample(every, min(options.sample, len(every)))
    counts: Counter[str] = Counter()
    tests = _tests_of(module)
    if options.list:
        for mutant in chosen:
            print(f"{module}:{mutant.line}: {mutant.told}")
        return module, counts
    if not _passes(copy, tests):
        print(f"{module}: its tests fail without any change", flush=True)
        return module, counts
    for mutant in sorted(chosen, key=lambda mutant: mutant.start):
        if any(module == name and part in mutant.told for name, part, _ in EQUIVALENT):
            counts["same"] += 1
        elif survives(copy, module, mutant, source, tests):
            counts["alive"] += 1
            print(f"{module}:{mutant.line}: {mutant.told}", flush=True)
        else:
            counts["killed"] += 1
    print(f"{module}: {dict(counts)}", flush=True)
    return module, counts


if __name__ == "__main__":
    sys.exit(main())
