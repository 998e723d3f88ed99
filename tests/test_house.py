"""Which package may import which, frozen dataclasses, and what a measurement loads."""

import ast
import subprocess
import sys
from functools import cache
from graphlib import CycleError, TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
parsed = cache(ast.parse)  # most modules are parsed for every planted import

# A package or module imports only from the lines above its own; those of one line do not import
# each other. What is not named here is a command, in the line "algorithms". The function `main` of
# an algorithm may import its command.
LAYERS = (
    ("kuhn_bridge",),
    ("algorithms.support", "algorithms.compiled.jit"),
    ("algorithms.compiled.lanes", "algorithms.tree"),
    ("algorithms.nashconv",),
    ("algorithms.cfr", "algorithms.sampled_regrets"),
    ("algorithms.public_tree",),
    ("algorithms.compiled", "algorithms.mccfr"),
    ("algorithms.linear_program",),
    ("algorithms.dominance", "algorithms.kuhn_equilibria"),
    ("algorithms.large_games.solver",),
    ("algorithms.solvers",),
    ("algorithms.games.game",),
    ("algorithms.large_games",),
    ("algorithms.games",),
    ("algorithms.policies",),
    ("algorithms.self_play",),
    ("algorithms.lower_bound",),
    ("algorithms.sweeps",),
    ("algorithms.playing", "algorithms.reports"),
    ("algorithms",),
    ("parity",),
)
UPWARDS = {"kuhn_bridge", "kuhn_bridge.sb3"}  # the public API, which loads algorithms when used
# Objects that users have, with methods whose work is done in higher layers: what such a method
# needs is imported when it is called. Nothing else in these modules may import from above.
WITH_SHORTCUTS = {"algorithms.games.game", "algorithms.policies.policy"}
MUTABLE = {"EndgameTable", "TerminalGame", "Tally"}  # dataclasses that count as they go


def sources():
    """The text of every module, by its dotted name; a package stands for its `__init__`."""
    found = {}
    for package in ("kuhn_bridge", "algorithms", "parity"):
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            found[name.removesuffix(".__init__")] = path.read_text(encoding="utf-8")
    return found


def package_of(module):
    """The package of `LAYERS` that a module belongs to, and its line."""
    known = {package: line for line, packages in enumerate(LAYERS) for package in packages}
    name = max((p for p in known if f"{module}.".startswith(f"{p}.")), key=len)
    return name, known[name]


def imports(nodes, modules):
    """The modules that are imported by these nodes of a module."""
    for node in nodes:
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.module:
            inner = [f"{node.module}.{alias.name}" for alias in node.names]
            names = [name if name in modules else node.module for name in inner]
        else:
            continue
        yield from (name for name in names if name in modules)


def violations(sources):
    """The imports that `LAYERS` forbids, as `(importer, imported)`."""
    for module, text in sources.items():
        package, line = package_of(module)
        tree = parsed(text)
        commands = [node for node in tree.body if getattr(node, "name", "") == "main"]
        if module in WITH_SHORTCUTS:
            commands += [node for node in tree.body if isinstance(node, ast.ClassDef | ast.If)]
        exempt = {node for command in commands for node in ast.walk(command)}
        for target in imports((node for node in ast.walk(tree) if node not in exempt), sources):
            other, its_line = package_of(target)
            same = other == package and package != "algorithms"
            if not (its_line < line or same or target == module or module in UPWARDS):
                yield module, target


def cycle(sources):
    """Modules that import each other in a circle when they are loaded; empty if there are none."""
    graph = {module: set(imports(parsed(text).body, sources)) for module, text in sources.items()}
    try:
        TopologicalSorter(graph).prepare()
    except CycleError as error:
        return error.args[1]
    return []


def test_packages_import_only_from_packages_below():
    assert list(violations(sources())) == []


def test_modules_do_not_import_each_other_in_a_circle():
    assert cycle(sources()) == []


@pytest.mark.parametrize(
    ("module", "line"),
    [
        ("kuhn_bridge.rules", "from algorithms.games import load_game"),
        ("algorithms.support.files", "import algorithms.tree"),
        ("algorithms.tree", "def f(): from algorithms.policies import policy"),
        ("algorithms.nashconv", "from algorithms import solve"),
        ("algorithms.games.game", "from algorithms.games.kuhn import kuhn"),
        ("algorithms.policies.policy", "import parity.check"),
        ("algorithms.policies.policy", "def f(): from algorithms import lower_bound"),
        ("algorithms.games.game", "def f(): from algorithms.games import load_game"),
        ("algorithms.large_games.large_game", "from algorithms.games import load_game"),
    ],
)
def test_a_wrong_import_would_be_noticed(module, line):
    planted = sources()
    planted[module] += f"\n{line}\n"
    assert list(violations(planted)) or cycle(planted)


def unfrozen(text):
    """The names of dataclasses that are not frozen."""
    for node in ast.walk(parsed(text)):
        if isinstance(node, ast.ClassDef):
            marks = [ast.unparse(mark) for mark in node.decorator_list]
            if any("dataclass" in mark and "frozen=True" not in mark for mark in marks):
                yield node.name


def test_dataclasses_are_frozen():
    assert {name for text in sources().values() for name in unfrozen(text)} <= MUTABLE
    assert list(unfrozen("@dataclass(slots=True)\nclass Result: x: int")) == ["Result"]


def test_measuring_kuhn_needs_neither_torch_nor_openspiel():
    code = (
        "import sys; from algorithms.nashconv import main; main(['uniform']); print(*sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    heavy = {"torch", "pyspiel", "stable_baselines3", "onnxruntime"}
    assert not heavy & set(done.stdout.split())


def numba_users(sources):
    """The modules that import numba."""
    for module, text in sources.items():
        for node in ast.walk(parsed(text)):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            elif isinstance(node, ast.ImportFrom):
                names = [node.module or ""]
            else:
                continue
            if any(name.split(".")[0] == "numba" for name in names):
                yield module


def test_only_the_compiled_package_imports_numba():
    outside = [m for m in numba_users(sources()) if not m.startswith("algorithms.compiled.")]
    assert outside == []


@pytest.mark.parametrize("line", ["import numba", "from numba import njit", "import numba.typed"])
def test_another_import_of_numba_would_be_noticed(line):
    planted = sources()
    planted["algorithms.cfr"] += f"\n{line}\n"
    assert "algorithms.cfr" in numba_users(planted)
