"""Equilibria of two-player zero-sum games by linear programs in sequence form.

A *plan* x gives each sequence of a player its reach probability by the player's own actions:

    E x = e, x >= 0          x(empty sequence) = 1; the actions of an information set share the
                             probability of the sequence that leads to it

With A the payoffs of player 0 by the sequences of both, F the opponent's E, and q one number per
information set of the opponent (what it still wins there when it responds best),

    maximize q(start)  subject to  E x = e,  x >= 0,  F^T q <= A^T x

has as solution the plan that guarantees the most, and that guarantee: the last line says that no
sequence of the opponent gives player 0 less than q. (Koller, Megiddo and von Stengel 1996; von
Stengel 1996.) One program per player gives an equilibrium.

The simplex method ends in a corner: some entries of x are 0 and some of the inequalities are equal,
and these determine all numbers. So a solution in floats says which linear equations hold, and
solving those in fractions gives the corner exactly. Whether it is an equilibrium is then verified
in fractions: what both plans guarantee has to sum to 0.
"""

from collections.abc import Sequence
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy import sparse

from algorithms.compiled.nashconv import nash_conv
from algorithms.support.arrays import Float64Array, IntpArray
from algorithms.tree import CHANCE, Tree
from kuhn_bridge.errors import GameError
from kuhn_bridge.rules import PLAYERS

MAX_CHOICES = 250_000  # a tree of more takes hours, or more memory than there is
MAX_EXACT_CHOICES = 20_000  # the same for fractions
MAX_DENOMINATOR = 10**6  # of a chance probability or a payoff
TOLERANCE = 1e-10  # the smallest that the solver accepts
LARGE_PAYOFF = 1e6  # above it payoffs are scaled
PROMISED = 1e-9  # NashConv of a solution, per chip of the largest payoff if that is above 1
ZERO = 1e-9  # a smaller number in a solution is 0
Plan: TypeAlias = list[Fraction]  # by sequence, (C + 1,)


class Solution(NamedTuple):
    """One equilibrium `(I, A)` of a two-player zero-sum tree, and its value for player 0."""

    policy: Float64Array
    value: float


class ExactSolution(NamedTuple):
    """One equilibrium in fractions: each information set's legal actions, and player 0's value."""

    policy: tuple[tuple[Fraction, ...], ...]  # (I,) of (actions of the information set,)
    value: Fraction


def solve_zero_sum(tree: Tree) -> Solution:
    """An equilibrium from the sequence-form linear programs."""
    require_solvable(tree)
    plan = np.zeros(tree.num_choices + 1)
    guarantees = []
    for player in PLAYERS:
        corner = _maxmin(tree, player)
        plan[corner.sequences] = corner.plan
        guarantees.append(corner.guarantee)
    policy = tree.normalized(np.maximum(plan[1:], 0), above=1e-12)
    distance = nash_conv(tree, policy)
    if distance > PROMISED * max(1.0, float(np.abs(tree.returns).max())):
        raise GameError(
            f"{tree.name}: the linear program was solved only to a NashConv of {distance:.1e}"
        )
    return Solution(policy, (guarantees[0] - guarantees[1]) / 2)


def solve_exactly(tree: Tree) -> ExactSolution:
    """An equilibrium in fractions, of a small game."""
    require_solvable(tree, exactly=True)
    payoffs = exact_payoffs(tree)
    plan = [Fraction(0)] * (tree.num_choices + 1)
    for player in PLAYERS:
        corner = _maxmin(tree, player)
        numbers = _exact_corner(tree, player, corner, payoffs)
        for sequence, number in zip(corner.sequences.tolist(), numbers, strict=True):
            plan[sequence] = number
    guarantees = [guaranteed(tree, player, plan, payoffs) for player in PLAYERS]
    if sum(guarantees) != 0:
        raise GameError(f"{tree.name}: no equilibrium in fractions was found; try without them")
    policy = []
    for first, stop in pairwise(tree.first_choice.tolist()):
        shares = plan[first + 1 : stop + 1]
        total = sum(shares)
        uniform = Fraction(1, stop - first)
        policy.append(tuple(share / total if total else uniform for share in shares))
    return ExactSolution(tuple(policy), guarantees[0])


def require_solvable(tree: Tree, *, exactly: bool = False) -> None:
    """Raise a `GameError` unless the game is zero-sum, between two players, and small enough."""
    if tree.num_players != 2:
        raise GameError(
            f"{tree.name} has {tree.num_players} players; the linear program is for two"
        )
    if np.abs(tree.returns.sum(axis=0)).max() > 1e-9:
        raise GameError(f"{tree.name} is not zero-sum; the linear program needs a zero-sum game")
    most = MAX_EXACT_CHOICES if exactly else MAX_CHOICES
    if tree.num_choices > most:
        program = "the linear program in fractions" if exactly else "the linear program"
        raise GameError(
            f"{tree.name} has {tree.num_choices:,} choices at its information sets; {program} is "
            f"for at most {most:,}. CFR has no such limit"
        )


class _Corner(NamedTuple):
    """A solution of a player's linear program."""

    sequences: IntpArray  # (n,) the player's sequences in the tree, the empty one first
    plan: Float64Array  # (n,) their probabilities
    values: Float64Array  # (m,) q: the start, then the opponent's information sets
    slack: Float64Array  # (k,) by how much each sequence of the opponent is worse for it
    guarantee: float


class _SequenceForm(NamedTuple):
    """One player's sequences, and the constraints on its plans."""

    sequences: IntpArray  # (n,) its sequences in the tree, the empty one first
    number: IntpArray  # (C + 1,) the number of each of them among these
    constraints: sparse.csr_array  # E: (1 + its information sets, n)


def _sequence_form(tree: Tree, player: int) -> _SequenceForm:
    """A player in sequence form.

    With one information set after the empty sequence and two actions there, E is

        [ 1  0  0 ]
        [-1  1  1 ]
    """
    choices = np.flatnonzero(tree.choice_owner == player)
    sequences = np.append(0, choices + 1)
    number = np.zeros(tree.num_choices + 1, np.intp)
    number[sequences] = np.arange(len(sequences))
    infosets = np.flatnonzero(tree.owner == player)
    row_of = np.zeros(len(tree.owner), np.intp)
    row_of[infosets] = np.arange(1, len(infosets) + 1)
    # The entries of three kinds: 1 for the empty sequence, 1 per action, -1 per parent.
    rows = np.concatenate([[0], row_of[tree.choice_infoset[choices]], row_of[infosets]])
    columns = np.concatenate([[0], number[choices + 1], number[tree.parent_sequence[infosets]]])
    entries = np.concatenate([np.ones(1 + len(choices)), -np.ones(len(infosets))])
    shape = (len(infosets) + 1, len(sequences))
    return _SequenceForm(
        sequences=sequences,
        number=number,
        constraints=sparse.csr_array((entries, (rows, columns)), shape=shape),
    )


def _maxmin(tree: Tree, player: int) -> _Corner:
    """The plan of a player with the highest guaranteed value, by the module's linear program."""
    from scipy.optimize import linprog

    form = _sequence_form(tree, player)
    opponent = _sequence_form(tree, 1 - player)
    # HiGHS refuses numbers as large as 1e15.
    largest = float(np.abs(tree.terminal_payoff[player]).max())
    scale = largest if largest > LARGE_PAYOFF else 1.0
    # A: the payoffs by the sequences of both, (n, k). Entries of equal sequences are added.
    rows = form.number[tree.terminal_sequence[player]]
    columns = opponent.number[tree.terminal_sequence[1 - player]]
    payoffs = sparse.csr_array(
        (tree.terminal_payoff[player] / scale, (rows, columns)),
        shape=(len(form.sequences), len(opponent.sequences)),
    )
    num_plan = len(form.sequences)
    num_values = opponent.constraints.shape[0]
    # The unknowns are x, then q. `linprog` minimizes.
    objective = np.zeros(num_plan + num_values)
    objective[num_plan] = -1
    no_values = sparse.csr_array((form.constraints.shape[0], num_values))
    start = np.zeros(form.constraints.shape[0])
    start[0] = 1
    result = linprog(
        objective,
        A_ub=sparse.hstack([-payoffs.T, opponent.constraints.T], format="csc"),
        b_ub=np.zeros(len(opponent.sequences)),
        A_eq=sparse.hstack([form.constraints, no_values], format="csc"),
        b_eq=start,
        bounds=[(0, None)] * num_plan + [(None, None)] * num_values,
        method="highs-ds",  # dual simplex: it ends in a corner
        options={
            "primal_feasibility_tolerance": TOLERANCE,
            "dual_feasibility_tolerance": TOLERANCE,
        },
    )
    if result.status != 0:
        raise GameError(f"{tree.name}: the linear program was not solved: {result.message}")
    return _Corner(
        sequences=form.sequences,
        plan=np.asarray(result.x[:num_plan]),
        values=np.asarray(result.x[num_plan:]) * scale,
        slack=np.asarray(result.slack) * scale,
        guarantee=-float(result.fun) * scale,
    )


def payoff_matrix(tree: Tree, player: int) -> Float64Array:
    """A player's payoffs by its own and the opponent's sequence: `(C + 1, C + 1)`."""
    matrix = np.zeros((tree.num_choices + 1,) * 2)
    sequences = tree.terminal_sequence[player], tree.terminal_sequence[1 - player]
    np.add.at(matrix, sequences, tree.terminal_payoff[player])
    return matrix


# Fractions


def exact_payoffs(tree: Tree) -> list[Fraction]:
    """Player 0's return at each terminal node, times chance's reach probability: `(Z,)`.

    Floats are read as the fractions of small denominators that they round.
    """
    known: dict[float, Fraction] = {}

    def read(number: float) -> Fraction:
        if number not in known:
            found = Fraction(number).limit_denominator(MAX_DENOMINATOR)
            if abs(float(found) - number) > 1e-15 * max(1.0, abs(number)):
                raise GameError(f"{tree.name}: {number!r} is not a fraction of small numbers")
            known[number] = found
        return known[number]

    reach = [Fraction(1)] * tree.num_nodes
    for node, (first, stop) in enumerate(pairwise(tree.first_child.tolist())):
        children = range(first, stop)
        steps = [read(float(tree.chance_probability[child])) for child in children]
        if tree.player[node] == CHANCE and sum(steps) != 1:
            raise GameError(f"{tree.name}: chance's probabilities are not fractions that sum to 1")
        for child, step in zip(children, steps, strict=True):
            reach[child] = reach[node] * step
    return [reach[node] * read(float(tree.returns[0, node])) for node in tree.terminals.tolist()]


def guaranteed(tree: Tree, player: int, plan: Plan, payoffs: Sequence[Fraction]) -> Fraction:
    """What a player's plan wins against a best response, in fractions."""
    opponent = 1 - player
    sign = 1 if opponent == 0 else -1  # payoffs are player 0's
    # What the opponent wins after each of its sequences, from terminals and then upwards.
    values = [Fraction(0)] * (tree.num_choices + 1)
    ends = tree.terminal_sequence[[player, opponent]].T.tolist()
    for (own, other), payoff in zip(ends, payoffs, strict=True):
        if plan[own]:
            values[other] += sign * plan[own] * payoff
    for infoset in np.flatnonzero(tree.owner == opponent)[::-1].tolist():
        first = int(tree.first_choice[infoset])
        stop = int(tree.first_choice[infoset + 1])
        values[int(tree.parent_sequence[infoset])] += max(values[first + 1 : stop + 1])
    return -values[0]


def _exact_corner(
    tree: Tree, player: int, corner: _Corner, payoffs: Sequence[Fraction]
) -> list[Fraction]:
    """The plan of a corner in fractions, `(n,)`: the solution of the equations that hold there.

    These are the constraints on plans, and the inequalities of the linear program that are equal.
    Rows map an unknown to its factor; the unknowns are x, then q.
    """
    rows = _constraint_rows(tree, player)
    constants = [Fraction(0)] * len(rows)
    constants[0] = Fraction(1)  # x(empty sequence)
    equal = _equal_inequalities(tree, player, corner, payoffs)
    rows += equal
    constants += [Fraction(0)] * len(equal)
    # The entries of x that are 0 in the corner are no unknowns.
    zeros = set(np.flatnonzero(corner.plan < ZERO).tolist())
    for row in rows:
        for unknown in zeros & row.keys():
            del row[unknown]
    solution = solve_equations(rows, constants)
    if solution is None:
        raise GameError(f"{tree.name}: no equilibrium in fractions was found; try without them")
    return [solution.get(sequence, Fraction(0)) for sequence in range(len(corner.sequences))]


def _constraint_rows(tree: Tree, player: int) -> list[dict[int, Fraction]]:
    """The rows of E x = e."""
    rows = []
    for constraint in _sequence_form(tree, player).constraints:
        entries = zip(constraint.indices.tolist(), constraint.data.tolist(), strict=True)
        rows.append({sequence: Fraction(int(factor)) for sequence, factor in entries})
    return rows


def _equal_inequalities(
    tree: Tree, player: int, corner: _Corner, payoffs: Sequence[Fraction]
) -> list[dict[int, Fraction]]:
    """The rows of F^T q - A^T x <= 0 that are equal in a corner, one per opponent's sequence."""
    form = _sequence_form(tree, player)
    opponent = _sequence_form(tree, 1 - player)
    num_plan = len(form.sequences)
    sign = 1 if player == 0 else -1  # payoffs are player 0's
    rows: dict[int, dict[int, Fraction]] = {}  # by the opponent's sequence
    for sequence in np.flatnonzero(corner.slack < ZERO).tolist():
        rows[sequence] = {}
    constraints = opponent.constraints.tocoo()
    entries = zip(*constraints.coords, constraints.data, strict=True)
    for value, sequence, factor in entries:
        if int(sequence) in rows:
            rows[int(sequence)][num_plan + int(value)] = Fraction(int(factor))
    ends = tree.terminal_sequence[[player, 1 - player]].T.tolist()
    for (end, opponents_end), payoff in zip(ends, payoffs, strict=True):
        row = rows.get(int(opponent.number[opponents_end]))
        if row is not None:
            unknown = int(form.number[end])
            row[unknown] = row.get(unknown, Fraction(0)) - sign * payoff
    return [{unknown: factor for unknown, factor in row.items() if factor} for row in rows.values()]


def solve_equations(
    rows: list[dict[int, Fraction]], constants: list[Fraction]
) -> dict[int, Fraction] | None:
    """A solution of linear equations in fractions, or None; unknowns that are free are 0.

    `rows` map the number of an unknown to its factor. Elimination takes the shortest row first,
    and in it the unknown of the fewest rows, so that rows stay short.
    """
    left = [dict(row) for row in rows]
    right = list(constants)
    rows_with: dict[int, set[int]] = {}
    for number, row in enumerate(left):
        for unknown in row:
            rows_with.setdefault(unknown, set()).add(number)
    waiting = set(range(len(left)))
    pivots: list[tuple[int, int]] = []  # (row, unknown) in the order of elimination
    while waiting:
        number = min(waiting, key=lambda one: len(left[one]))
        waiting.remove(number)
        row = left[number]
        if not row:
            if right[number]:
                return None
            continue
        unknown = min(row, key=lambda one: len(rows_with[one]))
        pivots.append((number, unknown))
        for other in rows_with[unknown] & waiting:
            factor = left[other][unknown] / row[unknown]
            for column, entry in row.items():
                changed = left[other].get(column, Fraction(0)) - factor * entry
                if changed:
                    left[other][column] = changed
                    rows_with[column].add(other)
                elif column in left[other]:
                    del left[other][column]
                    rows_with[column].discard(other)
            right[other] -= factor * right[number]
    solution: dict[int, Fraction] = {}
    for number, unknown in reversed(pivots):
        row = left[number]
        known = sum(
            (entry * solution.get(column, Fraction(0)) for column, entry in row.items()),
            Fraction(0),
        )
        solution[unknown] = (right[number] - known) / row[unknown]
    return solution
