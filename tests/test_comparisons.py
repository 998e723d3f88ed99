"""What the proof is made of: comparisons that can fail, and that are strict."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from parity import games, policies, solvers
from parity.tally import Tally

PARITY = Path(solvers.__file__).parent
TWO_SIDED = {"same", "close", "compare", "compare_knowledge"}


def calls() -> Iterator[tuple[str, str, ast.Call]]:
    """Every comparison in the code of the proof: where it stands, its name, and the call."""
    for path in sorted(PARITY.glob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call):
                name = getattr(node.func, "attr", getattr(node.func, "id", ""))
                yield f"{path.name}:{node.lineno}", name, node


def test_nothing_is_compared_with_itself() -> None:
    found = [(where, call) for where, name, call in calls() if name in TWO_SIDED]
    assert len(found) > 60
    for where, call in found:
        shown = [ast.unparse(argument) for argument in call.args]
        assert len(set(shown)) == len(shown), where


def test_no_claim_holds_whatever_happens() -> None:
    claims = [(where, call.args[2]) for where, name, call in calls() if name == "holds"]
    assert len(claims) >= 14
    for where, truth in claims:
        assert not (isinstance(truth, ast.Constant) and truth.value), where


def test_how_far_apart_two_sides_may_be() -> None:
    assert (solvers.EXACT, solvers.ITERATES) == (1e-12, 1e-9)
    assert (games.EXACT, games.ITERATES, games.TIED) == (1e-10, 1e-9, 1e-11)
    assert policies.SINGLE == 1e-6


@pytest.mark.parametrize(("apart", "red"), [(0.9, False), (1.1, True)])
def test_a_tolerance_is_a_tolerance(apart: float, red: bool) -> None:
    tally = Tally()
    tally.close("here", "pays {}", 0.0, apart * solvers.EXACT, solvers.EXACT)
    assert bool(tally.wrong) is red
    assert np.isclose(tally.deviation, apart * solvers.EXACT)
