"""The tolerances of the proof are strict, and a difference beyond them is noticed."""

from __future__ import annotations

import numpy as np
import pytest

from parity import games, policies, solvers
from parity.tally import Tally


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
