"""`python -m tests.mutants MODULE TEST...`: change a module in one place at a time, and run tests.

A mutant has one comparison, operator, number, condition or call changed. Tests that all pass on it
do not notice the change: it is printed. Some mutants change nothing that a user could notice.
"""

import argparse
import ast
import os
import random
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parent.parent
PACKAGES = ("kuhn_bridge", "algorithms", "parity", "tests", "docs", "examples")
PAIRS = [(ast.Lt, ast.LtE), (ast.Gt, ast.GtE), (ast.Eq, ast.NotEq), (ast.Is, ast.IsNot)]
PAIRS += [(ast.In, ast.NotIn), (ast.Add, ast.Sub), (ast.Mult, ast.Div), (ast.And, ast.Or)]
PAIRS += [(ast.BitAnd, ast.BitOr)]
SWAPS = dict(PAIRS) | {two: one for one, two in PAIRS}
SWAPS |= {ast.FloorDiv: ast.Mult, ast.Mod: ast.Mult, ast.Pow: ast.Mult}


def changes(node: ast.AST) -> Iterator[tuple[str, object]]:
    """The names of attributes of a node, with another value for each."""
    if isinstance(node, ast.Compare):
        for i, op in enumerate(node.ops):
            yield "ops", [*node.ops[:i], SWAPS[type(op)](), *node.ops[i + 1 :]]
    elif isinstance(node, ast.BinOp | ast.BoolOp | ast.AugAssign) and type(node.op) in SWAPS:
        yield "op", SWAPS[type(node.op)]()
    elif isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        yield "value", not node.value if isinstance(node.value, bool) else node.value + 1
    elif isinstance(node, ast.If | ast.While | ast.IfExp | ast.Assert):
        yield "test", ast.UnaryOp(ast.Not(), node.test)
    elif isinstance(node, ast.Expr) and isinstance(node.value, ast.Call):
        yield "value", ast.Constant(None)


def mutants(source: str) -> Iterator[tuple[str, str]]:
    """Each mutant of a module: its line before and after the change, and its source."""
    tree = ast.parse(source)
    for node in ast.walk(tree):
        for name, new in list(changes(node)):
            old = getattr(node, name)
            before = ast.unparse(node)
            setattr(node, name, new)
            text = f"{getattr(node, 'lineno', 0)}: {before} -> {ast.unparse(node)}"
            yield text.replace("\n", " ")[:200], ast.unparse(tree)
            setattr(node, name, old)


def main(argv: list[str] | None = None) -> int:
    """Print the mutants that no test notices; exit 1 if there are any."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=main.__doc__)
    parser.add_argument("module", help="e.g. kuhn_bridge/rules.py")
    parser.add_argument("tests", nargs="+", help="e.g. tests/test_rules.py")
    parser.add_argument("--sample", type=int, default=10**9, help="at most so many, at random")
    parser.add_argument("--timeout", type=float, default=300, help="seconds; slower tests fail")
    options = parser.parse_args(argv)
    original = (ROOT / options.module).read_text(encoding="utf-8")
    every = list(mutants(original))
    chosen = random.Random(0).sample(every, min(options.sample, len(every)))
    with tempfile.TemporaryDirectory() as name:
        for package in PACKAGES:
            shutil.copytree(ROOT / package, Path(name, package))
        shutil.copy(ROOT / "pyproject.toml", name)
        if not _survives(Path(name), original, options):
            parser.error("the tests fail without any change")
        survivors = [text for text, source in chosen if _survives(Path(name), source, options)]
    print(*survivors, f"{len(survivors)} of {len(chosen)} mutants were not noticed", sep="\n")
    return int(bool(survivors))


def _survives(copy: Path, source: str, options: argparse.Namespace) -> bool:
    """Whether the tests pass on a copy of the project in which the module is replaced."""
    (copy / options.module).write_text(source, encoding="utf-8")
    command = [sys.executable, "-m", "pytest", "-xq", "-pno:cacheprovider", *options.tests]
    env = os.environ | {"PYTHONPATH": str(copy)}
    try:
        done = subprocess.run(
            command, cwd=copy, env=env, capture_output=True, timeout=options.timeout, check=False
        )
    except subprocess.TimeoutExpired:
        return False
    return done.returncode == 0


if __name__ == "__main__":
    sys.exit(main())
