"""Counterfactual regret minimization (CFR) on flat arrays: one kernel, and variants as numbers.

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

Sums are computed in the order of OpenSpiel's solvers, so for two players the iterates of CFR and
CFR+ equal OpenSpiel's to the last bit. That matters in ties: regrets of 0 play uniformly, but a
rounding error above 0 always plays one action.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from math import inf
from typing import TypeAlias

import numpy as np

from algorithms.compiled.jit import compiled
from algorithms.support.arrays import Float64Array, Int64Array, UInt32Array
from algorithms.tree import Tree, unsigned
from kuhn_bridge.errors import BridgeError

Weights: TypeAlias = tuple[float, float, float, float]
# The last iteration to run, whether players alternate, and how many iterations are complete `(1,)`,
# which compiled code counts together with the sums.
Span: TypeAlias = tuple[int, bool, Int64Array]
MAX_NODE_VISITS = 2**25  # per compiled call, a fraction of a second: Ctrl-C waits for its end


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
    def numbers(self) -> Weights:
        """Alpha, beta, gamma, and 1 if predictive, for compiled code."""
        return float(self.alpha), float(self.beta), float(self.gamma), float(self.predictive)


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


class BaseSolver:
    """The base of all solvers on a tree: regrets and policy sums by slot `(S,)`.

    Ctrl-C loses nothing and breaks nothing: compiled code, which a signal cannot interrupt, adds 1
    to the number of iterations together with the sums of that iteration.
    """

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        self.tree = tree
        self.variant = variant
        self._done = np.zeros(1, np.int64)  # iterations, counted by compiled code
        self._regret, self._policy_sum = np.zeros((2, tree.num_slots))

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
        """The discounted sums of regrets `(S,)`."""
        return self._regret

    def _policy_sums(self) -> Float64Array:
        """The weighted sums of policies, times their owner's reach probability: `(S,)`."""
        return self._policy_sum

    def _span(self, iterations: int) -> Span:
        """The last iteration, whether players alternate, and the counter, for compiled code."""
        return self.iterations + iterations, self.variant.alternating, self._done

    def average_policy(self) -> Float64Array:
        """The average policy, which converges: `(I, A)`, uniform where it never arrives."""
        return self._normalized(self._policy_sums())

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        return self._normalized(np.maximum(self._regrets(), 0))

    def regrets(self) -> Float64Array:
        """The discounted sums of regrets: `(I, A)`."""
        return _frozen(self.tree.table_of(self._regrets()))

    def _normalized(self, weights: Float64Array) -> Float64Array:
        if not np.isfinite(weights).all():
            raise BridgeError(
                f"the averaging weights overflowed within {self.iterations:,} iterations"
            )
        return _frozen(self.tree.normalized(weights))


class Solver(BaseSolver):
    """The exact mode: OpenSpiel's iterates bit for bit. Visits all nodes of the tree."""

    def __init__(self, tree: Tree, variant: Variant = VARIANTS["cfr"]) -> None:
        super().__init__(tree, variant)
        self._arrays = _arrays(tree)
        self._last_regret = np.zeros(tree.num_slots)
        self._probability = np.concatenate([np.zeros(tree.num_slots), tree.chance_probability])
        self._reach = np.ones(tree.num_slots + 1)
        self._values = tree.returns.copy()
        self._advance(0)

    def _advance(self, iterations: int) -> None:
        policy = self._probability, self._reach, self._values
        sums = self._regret, self._last_regret, self._policy_sum
        _iterate(self._arrays, policy, sums, self.variant.numbers, self._span(iterations))

    def current_policy(self) -> Float64Array:
        """The last policy, which the next iteration would play: `(I, A)`."""
        return _frozen(self.tree.table_of(self._probability[: self.tree.num_slots]))


def _frozen(table: Float64Array) -> Float64Array:
    table.setflags(write=False)
    return table


# The kernel's inputs, each row in the order in which it is used:
#   nodes with children, last first: number, first child, number of children, first probability
#   decision nodes as in `Tree.members`: number, first child, sequences of all players
#   chance's reach probability of these
#   information sets by owner: first slot, end of slots, parent sequence, first member, end of
#   members
#   each owner's first information set
_Arrays: TypeAlias = tuple[UInt32Array, UInt32Array, Float64Array, UInt32Array, UInt32Array]
# The kernel's outputs. The policy: probabilities by slot, then by chance's edges; reach
# probabilities by sequence; values by player and node. Sums: regrets, those of the last
# iteration, policies.
_Policy: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]
_Sums: TypeAlias = tuple[Float64Array, Float64Array, Float64Array]


def _arrays(tree: Tree) -> _Arrays:
    first, counts, members = tree.first_child[:-1], np.diff(tree.first_child), tree.members
    slots = np.where(tree.infoset >= 0, tree.first_slot[tree.infoset], tree.num_slots + first)
    numbers = np.arange(tree.num_nodes, dtype=np.int32)
    nodes = np.column_stack([numbers, first, counts, slots])[counts > 0][::-1]
    decisions = np.column_stack([members, first[members], tree.sequence[:, members].T])
    starts, ends = tree.first_slot, tree.first_member
    infosets = [starts[:-1], starts[1:], tree.parent_sequence, ends[:-1], ends[1:]]
    by_owner = np.argsort(tree.owner, kind="stable")
    owners = np.searchsorted(tree.owner[by_owner], np.arange(tree.num_players + 1))
    return (
        unsigned(nodes),
        unsigned(decisions),
        tree.chance_reach[members],
        unsigned(np.column_stack(infosets)[by_owner]),
        unsigned(owners),
    )


@compiled
def _iterate(arrays: _Arrays, policy: _Policy, sums: _Sums, numbers: Weights, span: Span) -> None:
    """Run iterations `first + 1` to `last` in place; set the uniform policy before the first."""
    last, alternating, done = span
    first = done[0]
    players = len(policy[2])
    if first == 0:
        for player in range(players):
            _update_policy(arrays, policy, sums, (1.0, 1.0, 0.0, 0.0), player)
    for t in range(first + 1, last + 1):
        weights = iteration_weights(numbers, t)
        for player in range(players):
            _fill_values(arrays[0], policy, player)
            _add_regrets(arrays, policy, sums[0], player)
            if alternating:
                _update_policy(arrays, policy, sums, weights, player)
        if not alternating:
            for player in range(players):
                _update_policy(arrays, policy, sums, weights, player)
        done[0] = t


@compiled
def iteration_weights(numbers: Weights, t: int) -> Weights:
    """In iteration t: d_t of sums at or above 0, d_t below 0, t^gamma, and 1 if predictive."""
    alpha, beta, gamma, prediction = numbers
    return _discount(t, alpha), _discount(t, beta), float(t) ** gamma, prediction


@compiled
def _discount(t: int, exponent: float) -> float:
    """t^exponent / (t^exponent + 1)."""
    if np.isinf(exponent):
        return 1.0 if exponent > 0 else 0.0
    power: float = float(t) ** exponent
    return power / (power + 1)


@compiled
def _fill_values(nodes: UInt32Array, policy: _Policy, player: int) -> None:
    """Fill in a player's expected return at each node, from the last nodes to the first."""
    probability, _, values = policy
    value = values[player]
    for i in range(np.uint64(len(nodes))):
        child, slot = np.uint64(nodes[i, 1]), np.uint64(nodes[i, 3])
        mean = 0.0
        for k in range(np.uint64(nodes[i, 2])):
            mean += probability[slot + k] * value[child + k]
        value[np.uint64(nodes[i, 0])] = mean


@compiled
def _add_regrets(arrays: _Arrays, policy: _Policy, regret: Float64Array, player: int) -> None:
    """Add one iteration's regrets of a player."""
    _, members, chance, infosets, owners = arrays
    _, reach, values = policy
    value = values[player]
    for i in range(np.uint64(owners[player]), np.uint64(owners[player + 1])):
        start, count = np.uint64(infosets[i, 0]), np.uint64(infosets[i, 1] - infosets[i, 0])
        for m in range(np.uint64(infosets[i, 3]), np.uint64(infosets[i, 4])):
            others = 1.0
            for other in range(len(values)):
                if other != player:
                    others *= reach[np.uint64(members[m, 2 + other])]
            if others == 0:
                continue
            others *= chance[m]
            child, mean = np.uint64(members[m, 1]), value[np.uint64(members[m, 0])]
            for k in range(count):
                regret[start + k] += others * (value[child + k] - mean)


@compiled
def _update_policy(
    arrays: _Arrays, policy: _Policy, sums: _Sums, weights: Weights, player: int
) -> None:
    """Add a player's policy to the average, discount its regrets, and match them."""
    _, _, _, infosets, owners = arrays
    probability, reach, _ = policy
    regret, last_regret, policy_sum = sums
    discount_positive, discount_negative, weight, prediction = weights
    for i in range(owners[player], owners[player + 1]):
        start, stop, parent = infosets[i, 0], infosets[i, 1], infosets[i, 2]
        total = 0.0
        for slot in range(start, stop):
            policy_sum[slot] += weight * reach[slot + 1]
            new = regret[slot] - last_regret[slot]
            regret[slot] *= discount_positive if regret[slot] >= 0 else discount_negative
            last_regret[slot] = regret[slot]
            probability[slot] = max(regret[slot] + prediction * new, 0.0)
            total += probability[slot]
        for slot in range(start, stop):
            probability[slot] = probability[slot] / total if total > 0 else 1.0 / (stop - start)
            reach[slot + 1] = reach[parent] * probability[slot]
