"""What the proof is made of: comparisons that can fail, and that are strict."""

from __future__ import annotations

import ast
import math
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from kuhn_bridge import TabularPolicy
from parity import games, policies, sides, solvers
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


def test_a_tally_counts_notes_and_measures() -> None:
    tally = Tally()
    tally.same("here", "pays {}", 1, 1)
    tally.close("here", "pays {}", 1.0, 1.25, 0.5)
    assert (tally.compared, tally.wrong, tally.deviation) == (2, 0, 0.25)
    tally.same("there", "pays {}", 2, 1)
    assert (tally.compared, tally.wrong, tally.deviation) == (3, 1, 1)
    tally.close("there", "pays {}", 1.0, 4.0, 0.5)
    tally.close("there", "pays {}", math.nan, math.nan, 0.5)
    tally.holds("there", "it is so", False)
    tally.holds("there", "it is so", True)
    tally.fail("there: no way")
    assert (tally.compared, tally.wrong, tally.deviation) == (8, 5, math.inf)
    assert tally.cases == [
        "there: ours pays 2, OpenSpiel pays 1",
        "there: ours pays 1, OpenSpiel pays 4",
        "there: ours pays nan, OpenSpiel pays nan",
        "there: it is so does not hold",
        "there: no way",
    ]


@pytest.mark.parametrize(("apart", "red"), [(0.9, False), (1.1, True)])
def test_a_tolerance_is_a_tolerance(apart: float, red: bool) -> None:
    tally = Tally()
    tally.close("here", "pays {}", 0.0, apart * solvers.EXACT, solvers.EXACT)
    assert bool(tally.wrong) is red
    assert np.isclose(tally.deviation, apart * solvers.EXACT)


def test_a_card_may_not_be_likelier_by_a_billionth() -> None:
    tally, fair = Tally(), {(): dict.fromkeys(range(3), 1 / 3)}
    sides._compare_chance(fair, fair, tally)
    assert (tally.compared, tally.wrong) == (3, 0)
    sides._compare_chance({(): fair[()] | {2: 1 / 3 + 1e-9}}, fair, tally)
    assert tally.wrong == 1


def test_an_illegal_action_may_not_be_played_at_all() -> None:
    policy, tally = TabularPolicy.uniform(), Tally()
    rows = policy.probabilities.copy()
    rows[0, 0] += 1e-7  # as float32 has it
    policies.compare_rows(tally, policy, rows.tolist())
    assert (tally.compared, tally.wrong) == (36, 0)
    rows[0, 2] = 1e-7
    policies.compare_rows(tally, policy, rows.tolist())
    assert tally.cases == [
        "'0': ours plays FOLD with probability 1e-07, OpenSpiel plays FOLD with probability 0"
    ]
