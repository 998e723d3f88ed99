"""Exact values, best responses, NashConv and losses of a joint policy, for any number of players.

Let pi_p be the reach probability by player p's own actions, pi_-p that by chance and all others,
z terminal nodes, u returns, and s sequences (see `algorithms.tree`). Then

    v_p     = sum over z of pi(z) u_p(z)                                 the policy's value
    q_p(s)  = sum over z after s with no decision of p between of pi_-p(z) u_p(z)
            + sum over p's next information sets I after s of best(I)    counterfactual value
    best(I) = max over actions a of q_p(I, a)                            best response
    gain_p  = q_p(empty sequence) - v_p;   NashConv = sum over p of gain_p
    loss(I) = pi_p(I) (best(I) - sum over a of policy(a | I) q_p(I, a))

With perfect recall no nodes but the terminal ones are needed. A player's losses sum to its gain
(the performance difference lemma, Kakade and Langford 2002): they show where chips are lost.

Counterfactual values count hands that do not arrive. In chips at an information set, with h its
nodes and pi_-p(I) the sum of pi_-p(h):

    value(I, a) = q_p(I, a) / pi_-p(I);   cost(I, a) = max over b of value(I, b) - value(I, a)
    reach(I)    = pi_p(I) pi_-p(I);       belief(h)  = pi_-p(h) / pi_-p(I)

This is the plain form. `algorithms.compiled.nashconv` has the same functions, hundreds of times
faster, and is what the rest of the project calls; `parity.check` compares the two.
"""

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from algorithms.support.arrays import Float64Array, Int32Array
from algorithms.tree import Tree
from kuhn_bridge import notebook
from kuhn_bridge.errors import PolicyError

ROW_SUM_TOLERANCE = 1e-6  # allows for rows that were computed in float32
SHOWN_LOSSES = 5  # in a notebook
NO_LOSS = 1e-12  # chips per hand: rounding
NO_COST = 1e-12  # of the largest return: actions whose values differ by less are equally good


class Loss(NamedTuple):
    """The loss of a policy to a best response at one information set.

    Attributes:
        player: player who acts.
        infoset: number of the information set, for `Game.infoset_label`.
        reach: probability that a hand arrives there.
        played: most probable action of the policy.
        probability: probability of that action.
        best: action of the best response.
        lost: loss in chips per hand, averaged over all hands.
    """

    player: int
    infoset: int
    reach: float
    played: int
    probability: float
    best: int
    lost: float


class InfosetLabels(Protocol):
    """The texts of a game: a `Game` has them."""

    def infoset_label(self, infoset: int) -> str:
        """An information set in words."""

    def action_label(self, infoset: int, action: int) -> str:
        """An action at an information set in a word."""


@dataclass(frozen=True, eq=False, repr=False)
class Measure:
    """Values of a policy and of best responses to it, in chips per hand.

    Best responses and losses are computed when they are first read.

    Attributes:
        values: value of the policy for each player.
        best_values: value of each player's best response to the other players.
        labels: names of information sets and actions for `_repr_html_`, in a game with a tree.
    """

    values: tuple[float, ...]
    best_values: tuple[float, ...]
    compute_best_responses: Callable[[], Any] = field(repr=False)
    compute_losses: Callable[[], tuple[Loss, ...]] = field(repr=False)
    labels: InfosetLabels | None = field(default=None, repr=False)

    @property
    def gains(self) -> tuple[float, ...]:
        """How much more each player would win by best-responding to the others."""
        pairs = zip(self.best_values, self.values, strict=True)
        return tuple(max(best - value, 0.0) for best, value in pairs)

    @property
    def nash_conv(self) -> float:
        """The sum of all players' gains."""
        return sum(self.gains)

    def __repr__(self) -> str:
        return f"<Measure: NashConv {self.nash_conv:.6g}, gains {self.gains}>"

    @property
    def exploitability(self) -> float:
        """NashConv divided by the number of players."""
        return self.nash_conv / len(self.values)

    @cached_property
    def best_responses(self) -> Any:
        """The best response's action at each information set: int32 `(I,)`, the lowest ID in a tie.

        At each information set its owner responds to all other players.
        """
        return self.compute_best_responses()

    @cached_property
    def losses(self) -> tuple[Loss, ...]:
        """Where the policy loses chips to best responses, the largest loss first."""
        return self.compute_losses()

    def _repr_html_(self) -> str:
        """NashConv, what each player gains, and the largest losses, for a notebook."""
        header = ("chips per hand", "value", "of a best response", "gain")
        figures = zip(self.values, self.best_values, self.gains, strict=True)
        rows = [
            (f"player_{player}", f"{value:+.6f}", f"{best:+.6f}", f"{gain:.6f}")
            for player, (value, best, gain) in enumerate(figures)
        ]
        players = len(self.values)
        exploitability = notebook.nash_conv_text(self.exploitability)
        parts = [
            notebook.table(header, rows, numbers=(1, 2, 3)),
            notebook.paragraph(f"exploitability {exploitability} (NashConv / {players} players)"),
        ]
        if self.labels is not None:
            parts.append(self._losses_html(self.labels))
        return notebook.box(f"NashConv {notebook.nash_conv_text(self.nash_conv)}", *parts)

    def _losses_html(self, labels: InfosetLabels) -> str:
        """A table of the largest losses."""
        largest = [loss for loss in self.losses[:SHOWN_LOSSES] if loss.lost > 0]
        if not largest:
            return notebook.paragraph("no chips are lost to best responses")
        header = ("where chips are lost", "reached", "plays most", "best", "chips per hand")
        rows = []
        for loss in largest:
            played = labels.action_label(loss.infoset, loss.played)
            best = labels.action_label(loss.infoset, loss.best)
            label = labels.infoset_label(loss.infoset)
            plays = f"{played} {loss.probability:.2f}"
            rows.append((label, f"{loss.reach:.4f}", plays, best, f"{loss.lost:.6f}"))
        more = sum(loss.lost > 0 for loss in self.losses) - len(largest)
        note = notebook.paragraph(f"and {more:,} more") if more else ""
        return notebook.table(header, rows, numbers=(1, 4)) + note


class Evaluation(NamedTuple):
    """The numbers of the module's equations for one joint policy."""

    values: Float64Array  # (P,) v_p
    best_values: Float64Array  # (P,) q_p(empty sequence)
    reach: Float64Array  # (C + 1,) pi_p of each sequence, by its own player
    choice_values: Float64Array  # (C,) q_p(I, a)


@dataclass(frozen=True, slots=True, eq=False)
class ActionValues:
    """Where chips are won and lost under one joint policy, by the module's equations.

    Quotients are NaN where the other players and chance never arrive.
    """

    values: Float64Array  # (C,)
    costs: Float64Array  # (C,) exactly 0 for every best action
    reach: Float64Array  # (I,)
    losses: Float64Array  # (I,)
    beliefs: Float64Array  # (decision nodes,) in the order of the nodes


class InfosetValues(NamedTuple):
    """What information sets are worth to their owners when everybody follows a policy."""

    values: Float64Array  # (I,) the owner's expected return; 0 where the hand never arrives
    reach: Float64Array  # (I,) the probability that a hand arrives


# The equations.


def reach_probabilities(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """The probability of each sequence by its owner's own actions, under `(I, A)`: `(C + 1,)`."""
    probability = np.asarray(policy, np.float64)[tree.legal]  # (C,)
    reach = np.ones(tree.num_choices + 1)
    for infoset, parent in enumerate(tree.parent_sequence):  # an owner's earlier ones come first
        first, end = tree.first_choice[infoset : infoset + 2]
        reach[first + 1 : end + 1] = reach[parent] * probability[first:end]
    return reach


def evaluation(tree: Tree, policy: npt.ArrayLike) -> Evaluation:
    """Values, best responses' values, reach and counterfactual values of a policy `(I, A)`."""
    table = require_policy(tree, policy)
    reach = reach_probabilities(tree, table)
    values = np.zeros(tree.num_players)
    best_values = np.zeros(tree.num_players)
    choice_values = np.zeros(tree.num_choices)
    for player in range(tree.num_players):
        own_ends = tree.terminal_sequence[player]  # (Z,) the player's sequence at the end
        others_ends = np.delete(tree.terminal_sequence, player, axis=0)  # (P - 1, Z)
        others_reach = reach[others_ends].prod(axis=0)  # (Z,)
        # Chance's reach probabilities are in the terminals' payoffs.
        won = tree.terminal_payoff[player] * others_reach  # (Z,) pi_-p(z) u_p(z)
        by_sequence = np.bincount(own_ends, won, tree.num_choices + 1)
        values[player] = by_sequence @ reach

        # q_p of each sequence of the player, from its last information sets to the first.
        q = by_sequence
        for infoset in np.flatnonzero(tree.owner == player)[::-1]:
            first, end = tree.first_choice[infoset : infoset + 2]
            best = q[first + 1 : end + 1].max()
            q[tree.parent_sequence[infoset]] += best
        best_values[player] = q[0]
        own_choices = tree.choice_owner == player
        choice_values[own_choices] = q[1:][own_choices]
    return Evaluation(
        values=values, best_values=best_values, reach=reach, choice_values=choice_values
    )


def nash_conv(tree: Tree, policy: npt.ArrayLike) -> float:
    """Sum over players of (value of a best response - value of the policy `(I, A)`), in chips."""
    result = evaluation(tree, policy)
    return float(np.maximum(result.best_values - result.values, 0).sum())


def nash_convs(tree: Tree, policies: npt.ArrayLike) -> Float64Array:
    """NashConv `(B,)` of a batch of joint policies `(B, I, A)`."""
    return np.array([nash_conv(tree, policy) for policy in np.asarray(policies)], np.float64)


def evaluate_policy(tree: Tree, policy: npt.ArrayLike) -> Measure:
    """Values, best responses, NashConv and losses of a joint policy `(I, A)`."""
    table = require_policy(tree, policy)
    return measure_from(tree, table, evaluation(tree, table))


def expected_values(tree: Tree, policy: npt.ArrayLike) -> tuple[float, ...]:
    """Each player's expected return, in chips per hand, under a joint policy `(I, A)`."""
    return evaluate_policy(tree, policy).values


def action_values(tree: Tree, policy: npt.ArrayLike) -> ActionValues:
    """The values of all actions against a joint policy `(I, A)`, each player against the others."""
    return action_values_from(tree, policy, evaluation(tree, policy))


def infoset_values(tree: Tree, policy: npt.ArrayLike) -> InfosetValues:
    """What information sets are worth to their owners under a joint policy `(I, A)`."""
    reach = reach_probabilities(tree, policy)
    # Each player's return times the probability of its end: (P, Z).
    ends = reach[tree.terminal_sequence].prod(axis=0)
    won_at_ends = tree.terminal_payoff * ends
    won = np.zeros(len(tree.keys))
    for player in range(tree.num_players):
        # What is won after each of the player's sequences, from the last ones to the first.
        by_sequence = np.bincount(
            tree.terminal_sequence[player], won_at_ends[player], tree.num_choices + 1
        )
        for infoset in np.flatnonzero(tree.owner == player)[::-1]:
            first, end = tree.first_choice[infoset : infoset + 2]
            won[infoset] = by_sequence[first + 1 : end + 1].sum()
            by_sequence[tree.parent_sequence[infoset]] += won[infoset]

    arrivals = _arrivals(tree, reach)
    values = np.divide(won, arrivals, out=np.zeros_like(won), where=arrivals > 0)
    return InfosetValues(values=values, reach=arrivals)


def _arrivals(tree: Tree, reach: Float64Array) -> Float64Array:
    """The probability that a hand arrives at each information set: the sum over its nodes, `(I,)`.

    `reach` `(C + 1,)` are the sequences' probabilities.
    """
    nodes = tree.members
    node_reach = tree.chance_reach[nodes] * reach[tree.sequence[:, nodes]].prod(axis=0)
    return np.asarray(np.bincount(tree.infoset[nodes], node_reach, len(tree.keys)), np.float64)


def returns_std(tree: Tree, policy: npt.ArrayLike) -> float:
    """The standard deviation of a player's return in a hand under `(I, A)`, over all players."""
    return returns_std_from(tree, reach_probabilities(tree, policy))


# What follows from an evaluation, whichever of the two modules computed it.


def measure_from(tree: Tree, table: Float64Array, result: Evaluation) -> Measure:
    """The measure of a joint policy `(I, A)` with this evaluation."""
    unchanged = table.copy()  # losses are computed later
    return Measure(
        values=tuple(result.values.tolist()),
        best_values=tuple(result.best_values.tolist()),
        compute_best_responses=partial(best_responses, tree, result.choice_values),
        compute_losses=partial(largest_losses, tree, unchanged, result),
    )


def best_responses(tree: Tree, choice_values: Float64Array) -> Int32Array:
    """The action of the highest value at each information set, from values `(C,)`: `(I,)`."""
    table = np.full(tree.legal.shape, -np.inf)
    table[tree.legal] = choice_values
    return np.asarray(table.argmax(axis=1), np.int32)


def largest_losses(tree: Tree, table: Float64Array, result: Evaluation) -> tuple[Loss, ...]:
    """All losses above rounding, the largest first."""
    infosets = tree.choice_infoset
    best = np.maximum.reduceat(result.choice_values, tree.first_choice[:-1])  # (I,)
    regrets = table[tree.legal] * (best[infosets] - result.choice_values)  # (C,)
    own_reach = result.reach[tree.parent_sequence]  # (I,)
    lost = own_reach * np.bincount(infosets, regrets)  # (I,)

    above_rounding = np.flatnonzero(lost > NO_LOSS)
    largest_first = above_rounding[np.argsort(-lost[above_rounding], kind="stable")]
    columns: dict[str, npt.NDArray[Any]] = {
        "player": tree.owner,
        "infoset": np.arange(len(tree.keys)),
        "reach": _arrivals(tree, result.reach),
        "played": table.argmax(axis=1),
        "probability": table.max(axis=1),
        "best": best_responses(tree, result.choice_values),
        "lost": lost,
    }
    # By columns, because reading numbers one at a time from arrays is several times slower.
    fields = [columns[name][largest_first].tolist() for name in Loss._fields]
    return tuple(Loss(*row) for row in zip(*fields, strict=True))


def action_values_from(tree: Tree, policy: npt.ArrayLike, result: Evaluation) -> ActionValues:
    """The values of all actions, given the evaluation of a joint policy `(I, A)`."""
    table = np.asarray(policy, np.float64)
    infosets = tree.choice_infoset  # (C,)

    # pi_-p at each decision node, and summed over each information set.
    nodes = np.flatnonzero(tree.infoset >= 0)
    reach = result.reach[tree.sequence[:, nodes]]  # (P, decision nodes), by player
    reach[tree.player[nodes], np.arange(len(nodes))] = 1.0  # all players but the one who acts
    others_by_node = reach.prod(axis=0) * tree.chance_reach[nodes]
    others = np.bincount(tree.infoset[nodes], others_by_node, len(tree.keys))  # (I,)

    # What each choice costs, times pi_-p; differences by rounding count as none.
    best = np.maximum.reduceat(result.choice_values, tree.first_choice[:-1])  # (I,)
    regrets = best[infosets] - result.choice_values  # (C,)
    largest_return = np.abs(tree.returns).max()
    regrets[regrets <= NO_COST * largest_return * others[infosets]] = 0.0

    own_reach = result.reach[tree.parent_sequence]  # (I,)
    expected_regret = np.bincount(infosets, table[tree.legal] * regrets, len(tree.keys))  # (I,)
    with np.errstate(invalid="ignore", divide="ignore"):
        return ActionValues(
            values=result.choice_values / others[infosets],
            costs=regrets / others[infosets],
            reach=others * own_reach,
            losses=own_reach * expected_regret,
            beliefs=others_by_node / others[tree.infoset[nodes]],
        )


def returns_std_from(tree: Tree, reach: Float64Array) -> float:
    """The standard deviation of a player's return, given the sequences' reach `(C + 1,)`."""
    players_reach = reach[tree.terminal_sequence].prod(axis=0)  # (Z,)
    probability = players_reach * tree.chance_reach[tree.terminals]  # (Z,)
    returns = tree.returns[:, tree.terminals]  # (P, Z)
    means = (returns * probability).sum(axis=1, keepdims=True)  # (P, 1)
    variances = ((returns - means) ** 2 * probability).sum(axis=1)  # (P,)
    return float(np.sqrt(variances.mean()))


# Joint policies, and the check that a table is one.


def joint_policy(tree: Tree, policies: Sequence[npt.ArrayLike]) -> Float64Array:
    """The joint policy `(I, A)` in which player p plays `policies[p]`."""
    tables = np.stack([np.asarray(policy, np.float64) for policy in policies])
    return np.asarray(tables[tree.owner, np.arange(len(tree.keys))])


def pure_policy(tree: Tree, actions: npt.ArrayLike) -> Float64Array:
    """The joint policy `(I, A)` that always plays `actions` `(I,)`."""
    played = np.arange(tree.legal.shape[1]) == np.reshape(actions, (-1, 1))
    return np.asarray(played, np.float64)


def require_policy(tree: Tree, policy: npt.ArrayLike) -> Float64Array:
    """The policy as float64 `(I, A)`; a `PolicyError` if a row is not a distribution."""
    table = np.asarray(policy, np.float64)
    if table.shape != tree.legal.shape or not _valid_rows(tree, table).all():
        raise policy_error(tree, table)
    return table


def policy_error(tree: Tree, table: Float64Array) -> PolicyError:
    """The error of a policy: its shape, or its first row that is not a distribution."""
    if table.shape != tree.legal.shape:
        expected = " x ".join(str(size) for size in tree.legal.shape)
        got = " x ".join(str(size) for size in table.shape) or "a number"
        return PolicyError(f"a joint policy of {tree.name} is {expected}; got {got}")
    first = int(_valid_rows(tree, table).argmin())
    return PolicyError(
        f"{tree.keys[first]!r}: {table[first].tolist()} are not probabilities of its legal actions"
    )


def _valid_rows(tree: Tree, table: Float64Array) -> npt.NDArray[np.bool_]:
    """Which rows of a table `(I, A)` are distributions over the legal actions: `(I,)`."""
    possible = np.where(tree.legal, table >= 0, table == 0).all(axis=1)
    close_to_one = np.abs(table.sum(axis=1) - 1) <= ROW_SUM_TOLERANCE
    return np.asarray(possible & close_to_one)


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command `nashconv`, which is in `algorithms.reports.nashconv_command`."""
    from algorithms.reports.nashconv_command import main as command

    return command(argv)


if __name__ == "__main__":
    sys.exit(main())
