"""Counterfactual regret minimization (CFR): the equations, plain code, and variants as numbers.

In iteration t, with sigma_t the policies, pi_-p the reach probability by chance and all players but
p, and u_p(h, a) the expected return of p from node h if it plays a there and sigma_t otherwise:

    r_t(I, a)     = sum over nodes h of I of pi_-p(h) (u_p(h, a) - u_p(h))        regret
    R_t(I, a)     = d_t (R_t-1(I, a) + r_t(I, a))                         discounted sum of regrets
    m_t(I, a)     = R_t(I, a), in predictive variants R_t(I, a) + r_t(I, a)   predicted regret
    sigma_t+1     = max(m_t(I, a), 0) / sum over b of max(m_t(I, b), 0)           regret matching
                    (uniform if that sum is 0)
    average(I, a) ~ sum over t of t^gamma pi_p(I) sigma_t(I, a)                   converges

    d_t = t^alpha / (t^alpha + 1) where the sum is 0 or more, t^beta / (t^beta + 1) below

Zinkevich et al. 2007 (CFR); Tammelin 2014 (CFR+: beta is minus infinity, so sums are cut off at 0);
Brown and Sandholm 2019 (discounted and linear CFR); Farina, Kroer and Sandholm 2021 (predictive);
Xu et al. 2024 (PDCFR+: predictive, discounted and cut off at 0).

The average converges in every two-player zero-sum game. The last policy often converges too, in
predictive variants much faster, but nobody has proved when: so both are there, and
`algorithms.solvers` takes the better one.

`PlainSolver` is these equations in numpy, one function each. Two compiled solvers compute the same:

    algorithms.compiled.cfr_exact    in the order of OpenSpiel's solvers, so for two players the
                                     iterates of CFR and CFR+ equal OpenSpiel's to the last bit
    algorithms.compiled.cfr          another order, several times faster: what `kb.solve` runs

The order matters in ties: regrets of 0 play uniformly, but a rounding error above 0 always plays
one action. `parity.check` compares all three.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import NamedTuple

import numpy as np

from algorithms.compiled.jit import compiled
from algorithms.nashconv import reach_probabilities
from algorithms.support.arrays import Float64Array, Int64Array
from algorithms.tree import CHANCE, Tree
from kuhn_bridge.errors import BridgeError

MAX_NODE_VISITS = 2**25  # per compiled call, a fraction of a second: Ctrl-C waits for its end


class VariantNumbers(NamedTuple):
    """A `Variant` for compiled code."""

    alpha: float
    beta: float
    gamma: float
    prediction: float  # 1 if predictive, else 0


class Weights(NamedTuple):
    """The weights of one iteration t."""

    discount_positive: float  # d_t of sums of regrets that are 0 or more
    discount_negative: float  # d_t of those below 0
    average: float  # t^gamma
    prediction: float  # of the newest regrets in predicted regrets: 1 or 0


class Span(NamedTuple):
    """The iterations that one compiled call runs."""

    last: int  # the last iteration to run
    alternating: bool
    done: Int64Array  # (1,) complete iterations, which compiled code counts together with the sums


@dataclass(frozen=True, slots=True)
class Variant:
    """A member of the CFR family; the exponents are those of discounted CFR.

    An exponent of infinity keeps regrets as they are, minus infinity sets them to 0.
    """

    alpha: float = inf
    beta: float = inf
    gamma: float = 0
    alternating: bool = True  # players update in turn, each against the others' latest policies
    predictive: bool = False  # predicts that each iteration's regrets repeat

    @property
    def numbers(self) -> VariantNumbers:
        """The numbers that compiled code takes."""
        return VariantNumbers(
            alpha=float(self.alpha),
            beta=float(self.beta),
            gamma=float(self.gamma),
            prediction=float(self.predictive),
        )


VARIANTS: Mapping[str, Variant] = {
    "cfr": Variant(),
    "cfr+": Variant(beta=-inf, gamma=1),
    "lcfr": Variant(alpha=1, beta=1, gamma=1),  # linear
    "dcfr": Variant(alpha=1.5, beta=0, gamma=2),  # discounted
    "pcfr+": Variant(beta=-inf, gamma=2, predictive=True),
    "pdcfr+": Variant(alpha=2.3, beta=-inf, gamma=5, predictive=True),
    "cfr-simultaneous": Variant(alternating=False),  # as in Zinkevich et al. 2007
}


def require_iterations(iterations: int) -> None:
    """Raise an error for a negative number of iterations."""
    if iterations < 0:
        raise BridgeError(f"iterations must be 0 or more; got {iterations}")


@compiled
def iteration_weights(numbers: VariantNumbers, t: int) -> Weights:
    """The weights of iteration t."""
    return Weights(
        _discount(t, numbers.alpha),
        _discount(t, numbers.beta),
        float(t) ** numbers.gamma,
        numbers.prediction,
    )


@compiled
def _discount(t: int, exponent: float) -> float:
    """t^exponent / (t^exponent + 1)."""
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    power: float = float(t) ** exponent
    return power / (power + 1)


class BaseSolver:
    """The base of all solvers on a tree: regrets and policy sums by choice `(C,)`.

    Ctrl-C loses nothing and breaks nothing: compiled code, which a signal cannot interrupt, adds 1
    to the number of iterations together with the sums of that iteration.
    """

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        self.tree = tree
        self.variant = variant
        self._done = np.zeros(1, np.int64)  # iterations, counted by compiled code
        self._regret = np.zeros(tree.num_choices)
        self._policy_sum = np.zeros(tree.num_choices)

    @property
    def iterations(self) -> int:
        """The number of iterations that were run."""
        return int(self._done[0])

    def run(self, iterations: int) -> None:
        """Run `iterations` more iterations."""
        require_iterations(iterations)
        end = self.iterations + iterations
        most = max(1, MAX_NODE_VISITS // self.tree.num_nodes)
        while self.iterations < end:
            self._advance(min(most, end - self.iterations))

    def _advance(self, iterations: int) -> None:
        """Run iterations in one compiled call, which counts them in `_done`."""
        raise NotImplementedError

    def _regrets(self) -> Float64Array:
        """The discounted sums of regrets: `(C,)`."""
        return self._regret

    def _policy_sums(self) -> Float64Array:
        """The weighted sums of policies, times their owner's reach probability: `(C,)`."""
        return self._policy_sum

    def _span(self, iterations: int) -> Span:
        """The next iterations, for compiled code."""
        return Span(
            last=self.iterations + iterations,
            alternating=self.variant.alternating,
            done=self._done,
        )

    def average_policy(self) -> Float64Array:
        """The average policy, which converges: `(I, A)`, uniform where it never arrives."""
        return self._normalized(self._policy_sums())

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        return self._normalized(np.maximum(self._regrets(), 0))

    def regrets(self) -> Float64Array:
        """The discounted sums of regrets: `(I, A)`."""
        return read_only(self.tree.table_of(self._regrets()))

    def _normalized(self, weights: Float64Array) -> Float64Array:
        """The policy `(I, A)` in proportion to weights of choices `(C,)`."""
        if not np.isfinite(weights).all():
            raise BridgeError(
                f"the averaging weights overflowed within {self.iterations:,} iterations"
            )
        return read_only(self.tree.normalized(weights))


def read_only(table: Float64Array) -> Float64Array:
    """The table itself, which cannot be changed any more."""
    table.setflags(write=False)
    return table


# The equations.


def expected_returns(tree: Tree, policy: Float64Array, player: int) -> Float64Array:
    """u_p at every node under a joint policy `(I, A)`: `(N,)`."""
    values: Float64Array = tree.returns[player].copy()
    for node in range(tree.num_nodes - 1, -1, -1):  # children have higher numbers
        first, end = tree.first_child[node : node + 2]
        if tree.player[node] == CHANCE:
            probabilities = tree.chance_probability[first:end]
        else:
            probabilities = policy[tree.infoset[node], tree.action[first:end]]
        if end > first:
            values[node] = probabilities @ values[first:end]
    return values


def counterfactual_regrets(tree: Tree, policy: Float64Array, player: int) -> Float64Array:
    """r_t of a player's choices under a joint policy `(I, A)`, 0 for all others: `(C,)`."""
    values = expected_returns(tree, policy, player)
    reach = reach_probabilities(tree, policy)  # (C + 1,) of each sequence, by its own player
    regrets = np.zeros(tree.num_choices)
    for node in np.flatnonzero(tree.player == player):
        others = np.delete(tree.sequence[:, node], player)  # the other players' sequences
        others_reach = tree.chance_reach[node] * reach[others].prod()  # pi_-p(h)
        infoset = tree.infoset[node]
        choices = slice(tree.first_choice[infoset], tree.first_choice[infoset + 1])
        children = slice(tree.first_child[node], tree.first_child[node + 1])
        regrets[choices] += others_reach * (values[children] - values[node])
    return regrets


def regret_matching(tree: Tree, predicted: Float64Array) -> Float64Array:
    """The policy `(I, A)` in proportion to predicted regrets `(C,)` above 0."""
    return tree.normalized(np.maximum(predicted, 0))


class PlainSolver(BaseSolver):
    """The equations in numpy, to be read and to compare with; slow."""

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        super().__init__(tree, variant)
        self._newest = np.zeros(tree.num_choices)  # r_t
        self._policy = tree.uniform()  # sigma_t, of all players

    def _advance(self, iterations: int) -> None:
        for _ in range(iterations):
            weights = iteration_weights(self.variant.numbers, self.iterations + 1)
            for player in range(self.tree.num_players):
                self._set_newest_regrets(player)
                if self.variant.alternating:
                    self._update_policy(player, weights)
            if not self.variant.alternating:
                for player in range(self.tree.num_players):
                    self._update_policy(player, weights)
            self._done[0] += 1

    def _set_newest_regrets(self, player: int) -> None:
        of_player = self.tree.choice_owner == player  # (C,)
        self._newest[of_player] = counterfactual_regrets(self.tree, self._policy, player)[of_player]

    def _update_policy(self, player: int, weights: Weights) -> None:
        """Add a player's policy to the average, then set its next one by regret matching."""
        tree = self.tree
        of_player = tree.choice_owner == player  # (C,)

        # A choice's sequence is reached with probability pi_p(I) sigma_t(I, a).
        reach = reach_probabilities(tree, self._policy)
        self._policy_sum[of_player] += weights.average * reach[1:][of_player]

        sums = self._regret + self._newest
        discounts = np.where(sums >= 0, weights.discount_positive, weights.discount_negative)
        self._regret[of_player] = (discounts * sums)[of_player]
        predicted = self._regret + weights.prediction * self._newest

        own_rows = tree.owner == player  # (I,)
        self._policy[own_rows] = regret_matching(tree, predicted)[own_rows]

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        return read_only(self._policy.copy())
