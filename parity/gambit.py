"""Gambit as a second witness: it reads our games as `.efg` files and measures our policies.

Gambit computes with its own tree, its own regrets and its own linear programs, and shares no code
with OpenSpiel. The checks are skipped where `pygambit` is not installed.
"""

import random
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms.games import KUHN, load_game
from algorithms.games.efg_game import EfgGame
from algorithms.games.efg_writer import Labels, write_efg
from algorithms.linear_program import Solution, solve_zero_sum
from algorithms.nashconv import Measure, evaluate_policy, reach_probabilities
from algorithms.support.arrays import Float64Array
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from parity.registry import CheckSettings, Group, Skipped, Tally

GAMBIT = Group("gambit")
EXACT = 1e-12
LP_TOLERANCE = 1e-8  # of linear programs in floating point
LEDUC = "leduc_poker"
LIARS_DICE = "liars_dice(numdice=1,dice_sides=3)"
LARGEST_LP = 1_000  # choices; Gambit's dense simplex takes more than ten minutes for Leduc's 2,184
RANDOM_GAMES = 12
RANDOM_GAMES_QUICK = 3
MAX_DEPTH = 7  # of a random game
POLICIES = 3  # random ones per game
TEXT = re.compile(r'"(?:[^"\\]|\\.)*"', re.DOTALL)  # in an .efg file

Write: TypeAlias = Callable[[Path, Tree, Labels, list[str]], None]
Evaluate: TypeAlias = Callable[[Tree, Float64Array], Measure]


class Subgame(NamedTuple):
    """A game that Gambit reads from a file: its tree and its texts."""

    name: str
    tree: Tree
    labels: Labels
    num_events: int  # of chance; in a file that we write there is one per chance node
    path: Path | None = None  # of the file; None if the tree is written to one


@dataclass(frozen=True)
class _Numbers:
    """Labels of a random game: numbers."""

    tree: Tree

    def action_label(self, infoset: int, action: int) -> str:
        return str(action)

    def chance_labels(self, node: int) -> list[str]:
        first, stop = self.tree.first_child[node : node + 2].tolist()
        return [str(outcome) for outcome in range(stop - first)]


@GAMBIT.check("gambit-tree", "games as .efg files, read by Gambit: nodes, infosets, actions, reach")
def _check_tree(tally: Tally, settings: CheckSettings, *, write: Write = write_efg) -> None:
    tally.theirs = "Gambit"
    for subgame in _games(settings):
        name = subgame.name
        tree = subgame.tree
        game = _game_in_gambit(subgame, write)
        rows = _rows_in_gambit(tree)
        uniform = game.mixed_behavior_profile()
        ours = [tree.num_players, tree.num_nodes, subgame.num_events]
        theirs = [len(game.players), len(uniform.realiz_probs), len(game.get_events())]
        tally.same(name, "has {} players, nodes and chance events", ours, theirs)
        recalls = _with_own_events(game, subgame).is_perfect_recall
        tally.same(name, "has perfect recall: {}", True, bool(recalls))
        for player, seat in enumerate(game.players):
            place = f"{name}, player_{player}"
            actions = [len(list(row)) for _, row in uniform[seat]]
            tally.same(place, "has {} information sets", len(rows[player]), len(actions))
            expected = tree.legal[rows[player]].sum(axis=1).tolist()
            tally.same(place, "has {} actions at them", expected, actions)
        if tally.wrong:  # then a policy of one is no policy of the other
            continue
        table = tree.random(0)
        reach = _node_reach(tree, table)
        in_gambit = _profile(game, tree, table).realiz_probs
        pairs = zip(reach, in_gambit, strict=True)
        for node, (probability, (_, their_probability)) in enumerate(pairs):
            place = f"{name}, node {node} of a depth-first walk, random policy"
            phrase = "arrives with probability {}"
            tally.close(place, phrase, probability, float(their_probability), EXACT)


@GAMBIT.check("gambit-regrets", "values and gains against Gambit's payoffs and regrets")
def _check_regrets(
    tally: Tally, settings: CheckSettings, *, evaluate: Evaluate = evaluate_policy
) -> None:
    """Gambit's `max_regret` is the largest gain of a player.

    For each player it is asked about the game in which only that player is paid.
    """
    tally.theirs = "Gambit"
    for subgame in _games(settings):
        name = subgame.name
        tree = subgame.tree
        labels = subgame.labels
        game = _game_in_gambit(subgame)
        tolerance = EXACT * _largest_return(tree)
        paid = [_only_paid(tree, player) for player in range(tree.num_players)]
        alone = [_read_by_gambit(payoffs, labels) for payoffs in paid]
        for seed in range(POLICIES):
            table = tree.random(seed)
            measured = evaluate(tree, table)
            payoffs = _profile(game, tree, table).payoffs
            for player, seat in enumerate(game.players):
                place = f"{name}, random policy {seed}, player_{player}"
                value = measured.values[player]
                tally.close(place, "has the value {}", value, payoffs[seat], tolerance)
                regret = _profile(alone[player], tree, table).max_regret()
                tally.close(place, "gains {}", measured.gains[player], regret, tolerance)


@GAMBIT.check("gambit-value", "values in equilibrium against Gambit's linear programs")
def _check_value(
    tally: Tally, settings: CheckSettings, *, solve: Callable[[Tree], Solution] = solve_zero_sum
) -> None:
    """Kuhn in rational numbers; where the program is too large, our equilibrium has no regret."""
    tally.theirs = "Gambit"
    for subgame in _games(settings):
        name = subgame.name
        tree = subgame.tree
        if tree.num_players != 2 or not _is_zero_sum(tree):
            continue
        game = _with_own_events(_game_in_gambit(subgame), subgame)
        solution = solve(tree)
        largest = _largest_return(tree)
        if tree.num_choices <= LARGEST_LP:
            rational = name == KUHN
            theirs = _value_in_gambit(game, subgame, rational=rational)
            tolerance = EXACT if rational else LP_TOLERANCE * largest
            tally.close(name, "has the value {}", solution.value, theirs, tolerance)
        profile = _profile(game, tree, solution.policy)
        payoff = profile.payoffs[next(iter(game.players))]
        tally.close(
            name, "pays player_0 {} in equilibrium", solution.value, payoff, LP_TOLERANCE * largest
        )
        regret = profile.max_regret()
        tally.close(name, "leaves a regret of {}", 0.0, regret, LP_TOLERANCE * largest)
    if not tally.compared and not tally.wrong:
        raise Skipped("linear programs need two players and a zero-sum game")


def random_tree(seed: int) -> Tree:
    """A random game of two or three players; with two players it is zero-sum.

    Chance acts at the root and sometimes later. A player observes its own actions and, at each
    decision, a part of the last action of somebody else.
    """
    num_players = 2 + seed % 2
    generator = random.Random(seed)
    visits = _random_visits(generator, 0, -1, 1.0, [""] * num_players, 0)
    return TreeBuilder(f"random game {seed}", num_players, 3).build(visits)


def _random_visits(  # noqa: PLR0913, PLR0917  # one step of a recursion
    generator: random.Random,
    depth: int,
    action: int,
    probability: float,
    known: list[str],  # what each player knows: a new list for each child
    last: int,  # the last action
) -> Iterator[Visit]:
    players = len(known)
    if depth == MAX_DEPTH or (depth > players and generator.random() < 0.15):
        payoffs = [generator.randint(-20, 20) / 8 for _ in known]
        if players == 2:
            payoffs[1] = -payoffs[0]
        yield Visit(depth, TERMINAL, action, probability, returns=payoffs)
    elif depth == 0 or generator.random() < 0.15:
        yield Visit(depth, CHANCE, action, probability)
        weights = [generator.randint(1, 9) for _ in range(generator.randint(2, 3))]
        for outcome, weight in enumerate(weights):
            share = weight / sum(weights)
            yield from _random_visits(generator, depth + 1, outcome, share, list(known), outcome)
    else:
        player = generator.randrange(players)
        key = f"{known[player]} sees {last % 2}"
        # The same for all nodes of an information set.
        num_actions = random.Random(key).randint(1, 3)
        yield Visit(depth, player, action, probability, key, range(num_actions))
        for move in range(num_actions):
            after = list(known)
            after[player] = f"{key}, plays {move}"
            yield from _random_visits(generator, depth + 1, move, 1.0, after, move)


def _games(settings: CheckSettings) -> Iterator[Subgame]:
    """Kuhn, Leduc, Liar's Dice with three sides, and random games; or the game of a file."""
    if isinstance(settings.game, EfgGame):
        file = settings.game
        num_events = len(file.content.chance_actions)
        yield Subgame(file.name, file.tree, file, num_events, path=Path(file.name))
        return
    for name in (KUHN,) if settings.quick else (KUHN, LEDUC, LIARS_DICE):
        game = load_game(name)
        yield Subgame(name, game.tree, game, _num_chance_nodes(game.tree))
    for seed in range(RANDOM_GAMES_QUICK if settings.quick else RANDOM_GAMES):
        tree = random_tree(seed)
        yield Subgame(tree.name, tree, _Numbers(tree), _num_chance_nodes(tree))


def _num_chance_nodes(tree: Tree) -> int:
    return int((tree.player == CHANCE).sum())


def _is_zero_sum(tree: Tree) -> bool:
    """Whether the players' returns sum to zero at every end."""
    sums = tree.returns.sum(axis=0)
    return bool(np.abs(sums).max() <= EXACT * _largest_return(tree))


def _largest_return(tree: Tree) -> float:
    """The largest absolute return, or 1 if that is larger."""
    return max(1.0, float(np.abs(tree.returns).max()))


def _game_in_gambit(subgame: Subgame, write: Write = write_efg) -> Any:
    """The game as Gambit reads it: from its own file, or from one that we write."""
    if subgame.path is None:
        return _read_by_gambit(subgame.tree, subgame.labels, write)
    try:
        return file_in_gambit(subgame.path)
    except ValueError as error:
        raise Skipped(f"Gambit does not read {subgame.path}: {error}") from None


def _with_own_events(game: Any, subgame: Subgame) -> Any:
    """Gambit's game, or a copy where each chance node has an event of its own.

    Gambit asks chance, too, to remember its actions: a game has no perfect recall, and no linear
    program, if an event occurs twice on a path.
    """
    has_common_events = subgame.num_events < _num_chance_nodes(subgame.tree)
    if game.is_perfect_recall or not has_common_events:
        return game
    return _read_by_gambit(subgame.tree, subgame.labels)


def file_in_gambit(path: Path) -> Any:
    """The game of a file as Gambit reads it; a `ValueError` if it does not.

    Its version 17 refuses labels that earlier versions wrote, for example if two nodes have the
    same one. Such a file is read without its texts, which mean nothing to the measures.
    """
    import pygambit

    try:
        return pygambit.read_efg(path)
    except ValueError as error:
        if "label" not in str(error):
            raise
    without_texts = TEXT.sub('""', path.read_text(encoding="utf-8"))
    with TemporaryDirectory() as folder:
        copy = Path(folder) / "game.efg"
        copy.write_text(without_texts, encoding="utf-8")
        return pygambit.read_efg(copy)


def _read_by_gambit(tree: Tree, labels: Labels, write: Write = write_efg) -> Any:
    """A tree as Gambit reads it."""
    import pygambit

    with TemporaryDirectory() as folder:
        path = Path(folder) / "game.efg"
        players = [f"player_{player}" for player in range(tree.num_players)]
        write(path, tree, labels, players)
        return pygambit.read_efg(path)


def _value_in_gambit(game: Any, subgame: Subgame, *, rational: bool) -> float:
    """What player_0 wins in equilibrium, by Gambit's linear program.

    In some games that player_0 loses, version 17.0 answers with probabilities of 0 for all actions
    of an information set. It solves these games in rational numbers if player_1 pays player_0 so
    much that player_0 always wins.
    """
    import pygambit

    equilibrium = pygambit.nash.lp_solve(game, rational=rational).equilibrium
    if _is_policy(game, equilibrium):
        return float(equilibrium.payoffs[next(iter(game.players))])
    paid = 1.0 + _largest_return(subgame.tree)
    returns = subgame.tree.returns + np.array([[paid], [-paid]])  # (2, N)
    shifted = _read_by_gambit(replace(subgame.tree, returns=returns), subgame.labels)
    equilibrium = pygambit.nash.lp_solve(shifted, rational=True).equilibrium
    return float(equilibrium.payoffs[next(iter(shifted.players))]) - paid


def _is_policy(game: Any, profile: Any) -> bool:
    """Whether the probabilities of Gambit's profile sum to 1 at every information set."""
    for seat in game.players:
        for _, row in profile[seat]:
            total = sum(float(probability) for _, probability in row)
            if abs(total - 1) > LP_TOLERANCE:
                return False
    return True


def _only_paid(tree: Tree, player: int) -> Tree:
    """The tree of a game that pays the others nothing."""
    returns = np.zeros_like(tree.returns)
    returns[player] = tree.returns[player]
    return replace(tree, returns=returns)


def depth_first(tree: Tree) -> list[int]:
    """The nodes in Gambit's order: each before its children."""
    order = []
    stack = [0]
    while stack:
        node = stack.pop()
        order.append(node)
        first, stop = tree.first_child[node : node + 2].tolist()
        stack.extend(reversed(range(first, stop)))
    return order


def _rows_in_gambit(tree: Tree) -> list[list[int]]:
    """Each player's information sets in Gambit's order: as a depth-first walk meets them."""
    rows: list[list[int]] = [[] for _ in range(tree.num_players)]
    walked = tree.infoset[depth_first(tree)].tolist()
    for infoset in dict.fromkeys(walked):  # without repetitions
        if infoset >= 0:
            rows[int(tree.owner[infoset])].append(infoset)
    return rows


def _node_reach(tree: Tree, table: Float64Array) -> list[float]:
    """The probability that each node is reached under a policy `(I, A)`, in Gambit's order."""
    by_sequence = reach_probabilities(tree, table)  # (S + 1,)
    reach = tree.chance_reach * by_sequence[tree.sequence].prod(axis=0)  # (N,)
    return [float(probability) for probability in reach[depth_first(tree)]]


def _profile(game: Any, tree: Tree, table: Float64Array) -> Any:
    """A policy `(I, A)` as Gambit's profile: probabilities by player and information set."""
    data = [
        [table[infoset][tree.legal[infoset]].tolist() for infoset in rows]
        for rows in _rows_in_gambit(tree)
    ]
    return game.mixed_behavior_profile(data=data)
