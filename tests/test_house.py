"""The order of the house: who may import whom, and how light the door is."""

import ast
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGES = ("kuhn_bridge", "algorithms", "parity")
CORE = ("errors", "rules", "encoding", "state", "bridge", "policy")
FACES = ("kuhn_v0", "openspiel", "shimmy", "web")


def modules():
    return {
        ".".join(path.relative_to(ROOT).with_suffix("").parts): path
        for package in PACKAGES
        for path in (ROOT / package).rglob("*.py")
        if path.name != "__init__.py"
    }


def imports(path):
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def rank(module):
    """Where a module stands: packages in order; in kuhn_bridge the core's modules, then faces."""
    package, _, rest = module.partition(".")
    name = rest.split(".")[0]
    depth = CORE.index(name) if name in CORE else len(CORE)
    return PACKAGES.index(package), depth if package == "kuhn_bridge" else 0


@pytest.mark.parametrize("module", modules())
def test_a_module_imports_only_from_those_above_it(module):
    known = modules()
    for target in imports(known[module]):
        if target in known and target != module:
            assert rank(target) <= rank(module), f"{module} imports {target}"
            both_faces = rank(target) == rank(module) and module.startswith("kuhn_bridge")
            same_face = target.split(".")[1] == module.split(".")[1]
            assert not both_faces or same_face, f"{module} imports another face, {target}"


def test_imports_make_no_circle():
    known = modules()
    graph = {name: set(imports(path)) & set(known) - {name} for name, path in known.items()}
    assert len(list(TopologicalSorter(graph).static_order())) == len(known)


def test_every_module_of_the_core_has_its_place():
    names = {module.split(".")[1] for module in modules() if module.startswith("kuhn_bridge.")}
    assert names == {*CORE, *FACES}


def loaded_by(statement):
    code = f"import sys; {statement}; print(*sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    return set(done.stdout.split())


def test_the_door_is_light():
    heavy = {"torch", "pyspiel", "stable_baselines3", "pettingzoo", "gymnasium", "numba", "scipy"}
    assert not heavy & loaded_by("import kuhn_bridge")
    assert "pettingzoo" in loaded_by("from kuhn_bridge import env")
