"""The order of the house: who may import whom, and how light the door is."""

import ast
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("kuhn_bridge", "algorithms", "parity")

# Every module has its place here, and imports only from lines above its own. Modules of one line
# know nothing of each other.
ORDER = """
kuhn_bridge       errors
kuhn_bridge       rules
kuhn_bridge       encoding
kuhn_bridge       state
kuhn_bridge       bridge
kuhn_bridge       policy
kuhn_bridge       kuhn_v0 openspiel shimmy web.check
algorithms.support  errors compiled garbage arrays
algorithms.support  files progress draws server lanes
algorithms.support  command sealed
algorithms.exact    tree
algorithms.exact    kuhn values cfr linear_program
algorithms.exact    action_values sampling elimination simulation fast
algorithms.exact    solving
algorithms.games    game cache leduc
algorithms.games    kuhn openspiel
algorithms          games
algorithms.policies policy styles
algorithms.policies answers openspiel archive onnx_worker features
algorithms.policies network report
algorithms          policies
algorithms.policies onnx sb3
algorithms.policies sources
algorithms.playing  opponents
algorithms.playing  page terminal
algorithms.playing  tree_terminal
algorithms.learning board rows curve average tutorial checkpoint recipes
algorithms.learning faces hands
algorithms.learning selfplay
algorithms.learning networks
algorithms.learning steering models building
algorithms.learning callback
algorithms.learning training bands
algorithms.learning saving
algorithms.learning sweeping.plan sweeping.cluster
algorithms.learning sweeping.results sweeping.trial
algorithms.learning sweeping.running
algorithms.learning sweeping.driving
algorithms.reporting measures page
algorithms.reporting document
algorithms.reporting writing
algorithms          features networks recipes
algorithms          train_ppo nashconv solve evaluate simulate dominance sweep play report\
 export_onnx curves rps
parity              tally
parity              registry sides contests
parity              rules faces games selfplay solvers candidate
parity              policies
parity              check speed growth commands
"""


def places():
    """The line of each module."""
    return {
        f"{package}.{name}": number
        for number, line in enumerate(ORDER.strip().splitlines())
        for package, *names in [line.split()]
        for name in names
    }


def modules():
    """Every module by its dotted name; a package that imports is one too."""
    found = {}
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            name = ".".join(path.relative_to(ROOT).with_suffix("").parts)
            own = name.removesuffix(".__init__")
            if own == name or (own != package and list(imports(path))):
                found[own] = path
    return found


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.module != "__future__":
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_every_module_has_its_place():
    assert set(modules()) == set(places())


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_those_above_it(module):
    order = places()
    for target in imports(modules()[module]):
        if target in order and target != module:
            assert order[target] < order[module], f"{module} imports {target}"


def test_commands_import_no_commands():
    last = max(line for name, line in places().items() if name == "algorithms.nashconv")
    commands = {name for name, line in places().items() if line == last}
    for command in commands:
        assert not commands & set(imports(modules()[command])) - {command}


def dataclasses(path):
    """The name of each dataclass and what its decorator says."""
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        for mark in getattr(node, "decorator_list", ()):
            if isinstance(node, ast.ClassDef) and "dataclass" in ast.unparse(mark):
                yield node.name, ast.unparse(mark)


def test_values_are_frozen_and_take_no_other_names():
    found = dict(pair for path in modules().values() for pair in dataclasses(path))
    assert len(found) > 20
    usual = "dataclass(frozen=True, slots=True"
    assert {name for name, mark in found.items() if not mark.startswith(usual)} == {
        *("Game", "Tree", "Measure"),  # frozen, but keep what they have computed
        *("Sitting", "TreeSitting", "Tally"),  # count as they go
    }
    assert {found["Game"], found["Tree"]} == {"dataclass(frozen=True, eq=False)"}


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_door_is_light():
    heavy = {"torch", "pyspiel", "stable_baselines3", "pettingzoo", "gymnasium", "numba", "scipy"}
    assert not heavy & loaded_by("import kuhn_bridge")
    assert "pettingzoo" in loaded_by("from kuhn_bridge import env")


def test_measuring_kuhn_needs_neither_torch_nor_openspiel():
    heavy = {"torch", "pyspiel", "stable_baselines3", "onnxruntime"}
    assert not heavy & loaded_by("from algorithms.nashconv import main; main(['uniform'])")
