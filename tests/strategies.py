"""Shared Hypothesis strategies."""

import numpy as np
from hypothesis import strategies as st

from algorithms.games import kuhn
from kuhn_bridge import Policy, State
from kuhn_bridge.rules import DEALS, ENDINGS

deals = st.sampled_from(DEALS)
endings = st.sampled_from(ENDINGS)


@st.composite
def lines_of_play(draw: st.DrawFn) -> list[State]:
    """A whole hand, state by state, from the deal to the end."""
    states = [State.new(*draw(deals))]
    while not states[-1].is_terminal:
        states.append(states[-1].act(draw(st.sampled_from(states[-1].legal_actions))))
    return states


@st.composite
def policies(draw: st.DrawFn) -> Policy:
    """Any joint policy, corners included."""
    shares = draw(st.lists(st.floats(0, 1), min_size=12, max_size=12))
    table = np.zeros((12, 3))
    for row, share in enumerate(shares):
        first, second = np.flatnonzero(kuhn().tree.legal[row])
        table[row, first] = share
        table[row, second] = 1 - share
    return Policy("kuhn", table)
