"""The checks of `--game NAME` for native games: their rules, tensors and measures.

Small games are walked through exhaustively on OpenSpiel's states, large ones are sampled. Policies
of a large game are measured *after an opening*: random actions that both players' policies play
with certainty, after which few enough histories are left.
"""

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, TypeAlias

import numpy as np

from algorithms import nashconv
from algorithms.games import Game
from algorithms.large_games.large_game import NativeGame, Tables
from algorithms.large_games.liars_dice import LiarsDice, legal_actions
from algorithms.large_games.phantom.game import Phantom
from algorithms.large_games.phantom.rules import MAX_CELLS
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from parity.reference.phantom_walk import OPEN, WIN, find_tries, move, policies_of, walk
from parity.registry import NATIVE, Settings, Skipped, Tally, check

EXACT, PUBLISHED_DIGITS = 1e-12, 5e-7
SMALL = 6_000  # information sets; OpenSpiel's states of such games take seconds
HANDS, HANDS_QUICK = 300, 40  # random ones
LATE = 5  # legal actions of the player to act at the end of an opening
OPENING = 4  # actions before the walk over histories, which is compiled
# Uniform play: exp-a-spiel; Rudolph et al., ICLR 2026. By our own numbers of information sets.
PUBLISHED = {
    (3_683_314, 2_307_355): 0.788732,
    (14_482_810, 8_827_459): 0.619334,
    (3_720_850, 2_352_067): 0.916402,
    (16_497_034, 10_828_243): 0.762605,
    (7_864_320, 7_864_320): 0.890598,
}

PolicyRows: TypeAlias = Callable[[Any], Any]
"""The rows `(n, A)` of one player's policy at information sets `(n,)`."""
Reference: TypeAlias = Callable[[Sequence[PolicyRows]], nashconv.Measure]
"""Measures two players' policies after an opening: `values` and `best_values`."""


@check("rules", NATIVE, "actors, legal actions, ends and payoffs by our rules")
def check_rules(tally: Tally, settings: Settings) -> None:
    """Every state of a small game, random hands of a large one."""
    native = native_form(settings.game)
    phrases = {TERMINAL: "pays {}", CHANCE: "deals {}"}
    for state in _states(settings):
        where, theirs = f"after {state.history()}", state.current_player()
        after = _dice_position if isinstance(native, LiarsDice) else _phantom_position
        player, answer = after(native, state.history())
        tally.same(where, "lets {} act", player, theirs)
        expected = state.returns() if theirs == TERMINAL else state.legal_actions()
        tally.same(where, phrases.get(theirs, "allows {}"), answer, expected)


def _phantom_position(native: Phantom, history: Sequence[int]) -> tuple[int, list[Any]]:
    """Who acts after a history of OpenSpiel and the legal actions; at the end the returns."""
    position, end, mover = 0, OPEN, 0
    for cell in history:
        mover = position >> 4 * MAX_CELLS
        position, _, end = move(native.rules, position, cell)
    if end != OPEN:
        won = float((1 - 2 * mover) * (end == WIN))
        return TERMINAL, [won, -won]
    player = position >> 4 * MAX_CELLS
    tried = position >> MAX_CELLS * (2 + player)
    return player, [cell for cell in range(native.num_actions) if not tried >> cell & 1]


def _dice_position(native: LiarsDice, history: Sequence[int]) -> tuple[int, list[Any]]:
    """The same in Liar's Dice, where chance acts first."""
    rules, bids, dice = native.rules, native.num_actions - 1, native.rules.dice
    if len(history) < 2 * dice:
        return CHANCE, list(range(len(rules.matches)))
    moves = history[2 * dice :]
    player = len(moves) % 2
    if bids not in moves:  # nobody has called the other a liar
        code = np.array([sum(1 << (bids - 1 - bid) for bid in moves)])
        return player, np.flatnonzero(legal_actions(rules, code)[0]).tolist()
    bid, matching = moves[-2], 0
    for sides in (history[:dice], history[dice : 2 * dice]):
        roll = rules.rolls.tolist().index(sorted(side + 1 for side in sides))
        matching += int(rules.matches[rules.face[bid], roll])
    bidder_wins = matching >= rules.quantity[bid]
    won = 1.0 if bidder_wins == (player == 0) else -1.0  # the bidder would be next
    return TERMINAL, [won, -won]


@check("tensors", NATIVE, "information state tensors of the player to act")
def check_tensors(tally: Tally, settings: Settings) -> None:
    """At every decision that is visited."""
    native = native_form(settings.game)
    for where, state, player, infoset in _decisions(settings):
        ours = native.observations(player, infoset, infoset + 1)[0].tolist()
        tally.same(where, "observes {}", ours, state.information_state_tensor(player))


@check("masks", NATIVE, "legal actions of each information set")
def check_masks(tally: Tally, settings: Settings) -> None:
    """At every decision that is visited."""
    native = native_form(settings.game)
    for where, state, player, infoset in _decisions(settings):
        ours = np.flatnonzero(native.legal(player, infoset, infoset + 1)[0]).tolist()
        tally.same(where, "allows {}", ours, state.legal_actions())


@check("infosets", NATIVE, "one number per information set: what a player has seen and done")
def check_infosets(tally: Tally, settings: Settings) -> None:
    """Information sets that differ have different numbers; in a small game all numbers are used."""
    native = native_form(settings.game)
    keys: dict[tuple[int, int], Any] = {}
    numbers: dict[tuple[int, Any], int] = {}
    for where, state, player, infoset in _decisions(settings):
        key = _knowledge(native, state, player)
        known = keys.setdefault((player, infoset), key)
        tally.same(where, f"has {{}} as information set {infoset}", known, key)
        number = numbers.setdefault((player, key), infoset)
        tally.same(where, f"gives {key} the number {{}}", infoset, number)
        count = native.num_infosets[player]
        tally.holds(where, f"{infoset} is below {count}", 0 <= infoset < count)
    if _is_small(native):
        tally.same("the whole game", "has {} information sets", sum(native.num_infosets), len(keys))


def _knowledge(native: Phantom | LiarsDice, state: Any, player: int) -> Any:
    """A player's observations and actions so far.

    In phantom games these are the cells that it tried, each taken or found to be held. OpenSpiel's
    string is not used: in classical dark hex it also has the number of all actions.
    """
    if isinstance(native, LiarsDice):
        return state.information_state_string(player)
    cells, movers = state.history(), [step.player for step in state.full_history()]
    return tuple((x, x in cells[:i]) for i, x in enumerate(cells) if movers[i] == player)


@check("measure", NATIVE, "values and best responses against a walk over OpenSpiel's states")
def check_measure(tally: Tally, settings: Settings) -> None:
    """Random policies of a small game; of a large game, after an opening."""
    _compare_measures(tally, settings, _tree_reference, lambda x: len(x.legal_actions()) <= LATE)


@check("walk", NATIVE, "values and best responses against a generic walk over histories")
def check_walk(tally: Tally, settings: Settings) -> None:
    """The same against a compiled walk, so the openings of large games are shorter."""
    if not isinstance(native_form(settings.game), Phantom):
        raise Skipped("only phantom games have such a walk")
    tally.theirs = "the walk"
    _compare_measures(tally, settings, _walk_reference, lambda x: len(x.history()) == OPENING)


def _compare_measures(
    tally: Tally, settings: Settings, make: Callable[..., Reference], done: Callable[[Any], bool]
) -> None:
    """Compare random policies, in large games after an opening that ends when `done`."""
    game, native = settings.game, native_form(settings.game)
    pure = np.eye(native.num_actions)
    for seed in range(1 if settings.quick else 3):
        opening = [] if _is_small(native) else _opening(game, seed, done)
        tables = native.random(seed)
        _play_opening(game, opening, tables)
        found, reference = native.measure(tables), make(game, opening)
        policies: list[PolicyRows] = [table.__getitem__ for table in tables]
        expected = reference(policies)
        where = f"random policy {seed}{f', after {opening}' if opening else ''}"
        tally.close(where, "lets player 0 win {}", found.values[0], expected.values[0], EXACT)
        for player, response in enumerate(found.best_responses):
            responding = list(policies)
            responding[player] = lambda infosets: pure[response[infosets]]  # noqa: B023
            won, best = reference(responding).values[player], expected.best_values[player]
            phrase = f"lets player {player} win {{}} by its best response"
            tally.close(where, phrase, won, best, EXACT)
            if not opening:
                value = found.best_values[player]
                tally.close(where, f"has best value {{}} for player {player}", value, best, EXACT)


def _opening(game: Game, seed: int, done: Callable[[Any], bool]) -> list[int]:
    """Random actions of the players until `done`, none of which ends the game."""
    rng = np.random.default_rng(seed)
    while True:
        state, actions = game.origin.new_initial_state(), []
        while not state.is_terminal() and (state.is_chance_node() or not done(state)):
            action = int(rng.choice(state.legal_actions()))
            if not state.is_chance_node():
                actions.append(action)
            state.apply_action(action)
        if not state.is_terminal():
            return actions


def _play_opening(game: Game, opening: Sequence[int], tables: Tables) -> None:
    """Let tables play the opening with certainty, whatever chance has dealt."""
    native, stack = native_form(game), [(game.origin.new_initial_state(), opening)]
    while stack:
        state, left = stack.pop()
        if state.is_chance_node():
            stack += [(state.child(outcome), left) for outcome in state.legal_actions()]
        elif left:
            row = np.eye(native.num_actions)[left[0]]
            tables[state.current_player()][infoset_of(native, state)] = row
            stack.append((state.child(left[0]), left[1:]))


def tree_of_states(game: Game, opening: Sequence[int] = ()) -> Tree:
    """The tree of OpenSpiel's states that begin with an opening; its keys are our numbers."""
    native = native_form(game)

    def visits(
        state: Any, left: Sequence[int], depth: int = 0, action: int = -1, share: float = 1.0
    ) -> Iterator[Visit]:
        player, moves = state.current_player(), []
        if player == TERMINAL:
            yield Visit(depth, player, action, share, returns=state.returns())
        elif player == CHANCE:
            yield Visit(depth, player, action, share)
            moves = state.chance_outcomes()
        else:
            legal = left[:1] or state.legal_actions()
            yield Visit(depth, player, action, share, str(infoset_of(native, state)), legal)
            moves, left = [(choice, 1.0) for choice in legal], left[1:]
        for choice, odds in moves:
            yield from visits(state.child(choice), left, depth + 1, choice, odds)

    first = game.origin.new_initial_state()
    return TreeBuilder(game.name, 2, native.num_actions).build(visits(first, opening))


def _tree_reference(game: Game, opening: Sequence[int]) -> Reference:
    """Measures on a tree of OpenSpiel's states."""
    tree = tree_of_states(game, opening)
    infosets, free = np.array(list(map(int, tree.keys))), tree.legal.sum(axis=1) > 1

    def measure(policies: Sequence[PolicyRows]) -> nashconv.Measure:
        table = tree.legal.astype(np.float64)
        for player, rows in enumerate(policies):
            own = free & (tree.owner == player)
            table[own] = rows(infosets[own])
        return nashconv.evaluate_policy(tree, table / table.sum(axis=1, keepdims=True))

    return measure


def _walk_reference(game: Game, opening: Sequence[int]) -> Reference:
    """Measures by the compiled walk over all histories after an opening."""
    native = native_form(game)
    tries = find_tries(native.rules, opening)

    def measure(policies: Sequence[PolicyRows]) -> nashconv.Measure:
        return walk(native.rules, tries, policies_of(tries, native.sequences, policies))

    return measure


@check("published", NATIVE, "uniform play's exploitability against published figures")
def check_published(
    tally: Tally, settings: Settings, *, figures: dict[Any, float] = PUBLISHED
) -> None:
    """Six digits, in the five benchmark games."""
    native = native_form(settings.game)
    published = figures.get(native.num_infosets)
    if published is None:
        raise Skipped("no figure is published for this game")
    tally.theirs = "exp-a-spiel"
    found = native.measure(native.uniform()).exploitability
    tally.close("uniform play", "has exploitability {}", found, published, PUBLISHED_DIGITS)


def _states(settings: Settings) -> Iterator[Any]:
    """All states of a small game, those of random hands of a large one."""
    game = settings.game
    if _is_small(native_form(game)):
        stack = [game.origin.new_initial_state()]
        while stack:
            state = stack.pop()
            yield state
            stack += [state.child(action) for action in state.legal_actions()]
        return
    rng = np.random.default_rng(0)
    for hand in range(HANDS_QUICK if settings.quick else HANDS):
        state = game.origin.new_initial_state()
        few = 3 if hand % 2 else None  # every other hand takes small steps, so it is long
        while not state.is_terminal():
            yield state
            state = state.child(int(rng.choice(state.legal_actions()[:few])))
        yield state


def _decisions(settings: Settings) -> Iterator[tuple[str, Any, int, int]]:
    """States in which a player acts, each with its label, the player and our information set."""
    for state in _states(settings):
        if (player := state.current_player()) >= 0:
            where = f"player {player} after {state.history()}"
            yield where, state, player, infoset_of(native_form(settings.game), state)


def infoset_of(native: NativeGame, state: Any) -> int:
    """The information set of the player to act in an OpenSpiel state."""
    tensor = np.array([state.information_state_tensor()], np.float32)
    return int(native.find_infosets(state.current_player(), tensor)[0])


def _is_small(native: NativeGame) -> bool:
    return sum(native.num_infosets) <= SMALL


@cache
def native_form(game: Game) -> Any:
    """A game's native form, also of one that fits a tree."""
    return game.native or game.find_native()
