"""The checks of `--game NAME` for native games: their rules, tensors and measures.

Small games are walked through exhaustively on OpenSpiel's states, large ones are sampled. Policies
of a large game are measured *after an opening*: random actions that both players' policies play
with certainty, after which few enough histories are left.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple

import numpy as np

from algorithms.exact.liars_dice import legal_actions
from algorithms.exact.native import Tables
from algorithms.exact.phantom.rules import MAX_CELLS
from algorithms.exact.phantom.sequences import infosets_of
from algorithms.exact.phantom.walk import OPEN, WIN, find_tries, move, walk
from algorithms.exact.values import Measure
from algorithms.games import Game
from algorithms.games.liars_dice import LiarsDice
from algorithms.games.native import NativeGame
from algorithms.games.phantom import Phantom
from algorithms.support.arrays import Float64Array, Int8Array
from parity.registry import NATIVE, Settings, Skipped, check
from parity.tally import Tally

EXACT = 1e-12
PUBLISHED_DIGITS = 5e-7
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


class Position(NamedTuple):
    """What our rules say after some actions, chance's included."""

    player: int  # to act; -1 for chance, -4 at the end, as in OpenSpiel
    legal: list[int]
    returns: list[float]


@check("rules", NATIVE, "actors, legal actions, ends and payoffs by our rules")
def check_rules(tally: Tally, settings: Settings) -> None:
    """Every state of a small game, random hands of a large one."""
    native = _native(settings)
    for state in _states(settings):
        where, player = f"after {state.history()}", state.current_player()
        found = position(native, state.history())
        tally.same(where, "lets {} act", found.player, player)
        if player >= 0:
            tally.same(where, "allows {}", found.legal, state.legal_actions())
        elif state.is_terminal():
            tally.same(where, "pays {}", found.returns, state.returns())
        else:
            dealt = sorted(action for action, _ in state.chance_outcomes())
            tally.same(where, "deals {}", found.legal, dealt)


def position(native: NativeGame, history: Sequence[int]) -> Position:
    """What our rules say after a history of OpenSpiel."""
    if isinstance(native, Phantom):
        return _phantom_position(native, history)
    if isinstance(native, LiarsDice):
        return _dice_position(native, history)
    raise TypeError(f"{native!r} has no rules here")


def _phantom_position(native: Phantom, history: Sequence[int]) -> Position:
    rules, found, end = native.rules, 0, OPEN
    for cell in history:
        mover = found >> 4 * MAX_CELLS
        found, _, end = move(rules.wins, rules.abrupt, found, cell)
    if end != OPEN:
        won = (1.0 if mover == 0 else -1.0) if end == WIN else 0.0
        return Position(-4, [], [won, -won])
    player = found >> 4 * MAX_CELLS
    tried = found >> MAX_CELLS * (2 + player)
    return Position(player, [cell for cell in range(rules.cells) if not tried >> cell & 1], [])


def _dice_position(native: LiarsDice, history: Sequence[int]) -> Position:
    rules, bids, dice = native.rules, native.num_actions - 1, native.rules.dice
    if len(history) < 2 * dice:
        return Position(-1, list(range(len(rules.matches))), [])
    *before, last = history[2 * dice :] or [-1]
    player = (len(history) - 2 * dice) % 2
    if last < bids:
        made = [*before, last] if last >= 0 else []
        code = np.array([sum(1 << (bids - 1 - bid) for bid in made)])
        return Position(player, np.flatnonzero(legal_actions(rules, code)[0]).tolist(), [])
    matching = 0
    for owner in (0, 1):
        roll = sorted(side + 1 for side in history[owner * dice : (owner + 1) * dice])
        private = rules.rolls.tolist().index(roll)
        matching += int(rules.matches[rules.face[before[-1]], private])
    caller = 1 - player
    won = 1.0 if matching < rules.quantity[before[-1]] else -1.0
    return Position(-4, [], [won, -won] if caller == 0 else [-won, won])


@check("tensors", NATIVE, "information state tensors of the player to act")
def check_tensors(tally: Tally, settings: Settings) -> None:
    """Of each information set that is met."""
    native = _native(settings)
    for state, player, infoset in _decisions(settings):
        ours = native.observations(player, infoset, infoset + 1)[0].tolist()
        tally.same(_where(state), "observes {}", ours, state.information_state_tensor(player))


@check("masks", NATIVE, "legal actions of each information set")
def check_masks(tally: Tally, settings: Settings) -> None:
    """As a mask over all actions."""
    native = _native(settings)
    for state, player, infoset in _decisions(settings):
        ours = np.flatnonzero(native.legal(player, infoset, infoset + 1)[0]).tolist()
        tally.same(_where(state), "allows {}", ours, state.legal_actions())


@check("infosets", NATIVE, "one number per information set: what a player has seen and done")
def check_infosets(tally: Tally, settings: Settings) -> None:
    """Numbers of what differs differ; in a small game, every number is met."""
    native = _native(settings)
    keys: dict[tuple[int, int], Any] = {}
    numbers: dict[tuple[int, Any], int] = {}
    for state, player, infoset in _decisions(settings):
        key = _knowledge(native, state, player)
        known = keys.setdefault((player, infoset), key)
        tally.same(_where(state), f"{infoset} of player {player} is {{}}", known, key)
        number = numbers.setdefault((player, key), infoset)
        tally.same(_where(state), f"{key} of player {player} is {{}}", infoset, number)
        tally.holds(
            _where(state),
            f"{infoset} is below {native.num_infosets[player]}",
            0 <= infoset < native.num_infosets[player],
        )
    if _is_small(native):
        tally.same("the whole game", "has {} information sets", sum(native.num_infosets), len(keys))


def _knowledge(native: NativeGame, state: Any, player: int) -> Any:
    """What a player has seen and done.

    In phantom games its own cells, each taken or found to be held; not OpenSpiel's string, which
    in classical dark hex also has the number of all actions.
    """
    if not isinstance(native, Phantom):
        return state.information_state_string(player)
    held: set[int] = set()
    own = []
    for step in state.full_history():
        if step.player == player:
            own.append((step.action, step.action in held))
        held.add(step.action)
    return tuple(own)


@check("measure", NATIVE, "values and best responses against a walk over OpenSpiel's states")
def check_measure(
    tally: Tally,
    settings: Settings,
    *,
    measure: Callable[[NativeGame, Tables], Measure] = lambda game, x: game.measure(x),
) -> None:
    """Random policies: of the whole of a small game, after openings of a large one."""
    game, native = _game(settings), _native(settings)
    small = _is_small(native)
    for seed in range(1 if settings.quick else 3):
        opening = () if small else _opening(game, seed, lambda s: len(s.legal_actions()) <= LATE)
        tables = native.random(seed)
        states = _Walk(game.origin, native, opening)
        states.play_opening(tables)
        found = measure(native, tables)
        where = f"random policy {seed}{f', after {list(opening)}' if opening else ''}"
        tally.close(where, "wins {} as player 0", found.values[0], states.value(tables), EXACT)
        for player in (0, 1):
            response = found.best_responses[player]
            best = states.response_value(player, tables)
            ours = states.response_value(player, tables, response)
            tally.close(where, f"player {player}'s best response wins {{}}", ours, best, EXACT)
            if small:
                value = found.best_values[player]
                tally.close(where, f"player {player}'s best value is {{}}", value, best, EXACT)


@check("walk", NATIVE, "values and best responses against a generic walk over histories")
def check_walk(
    tally: Tally,
    settings: Settings,
    *,
    measure: Callable[[NativeGame, Tables], Measure] = lambda game, x: game.measure(x),
) -> None:
    """The same, compiled: so the openings of large games are shorter."""
    game, native = _game(settings), _native(settings)
    if not isinstance(native, Phantom):
        raise Skipped("only phantom games have such a walk")
    tally.theirs = "the walk"
    for seed in range(1 if settings.quick else 3):
        length = 0 if _is_small(native) else OPENING
        opening = _opening(game, seed, lambda state: len(state.history()) == length)  # noqa: B023
        tables = native.random(seed)
        state = game.origin.new_initial_state()
        for action in opening:
            player = state.current_player()
            tables[player][native.infoset_of(state, player)] = np.eye(native.num_actions)[action]
            state.apply_action(action)
        found = measure(native, tables)
        tries = find_tries(native.rules, opening)
        infosets = [
            infosets_of(native.sequences[p], tries.actions[p], tries.outcomes[p]) for p in (0, 1)
        ]
        policies = [_rows(tables[p], infosets[p]) for p in (0, 1)]
        expected = walk(native.rules, tries, (policies[0], policies[1]))
        where = f"random policy {seed}{f', after {list(opening)}' if opening else ''}"
        tally.close(where, "wins {} as player 0", found.values[0], expected.values[0], EXACT)
        for player in (0, 1):
            pure = np.eye(native.num_actions, dtype=np.float32)[found.best_responses[player]]
            responding = list(policies)
            responding[player] = _rows(pure, infosets[player])
            won = walk(native.rules, tries, (responding[0], responding[1])).values[player]
            best = expected.best_values[player]
            tally.close(where, f"player {player}'s best response wins {{}}", won, best, EXACT)


def _rows(table: Any, infosets: Any) -> Float64Array:
    """The rows of information sets, normalised; 0 where the player does not act."""
    policy = np.zeros((len(infosets), table.shape[1]))
    acts = infosets >= 0
    policy[acts] = table[infosets[acts]]
    policy[acts] /= policy[acts].sum(axis=1, keepdims=True)
    return policy


@check("published", NATIVE, "uniform play's exploitability against published figures")
def check_published(
    tally: Tally,
    settings: Settings,
    *,
    measure: Callable[[NativeGame, Tables], Measure] = lambda game, x: game.measure(x),
) -> None:
    """Six digits, in the five benchmark games."""
    native = _native(settings)
    published = PUBLISHED.get((native.num_infosets[0], native.num_infosets[1]))
    if published is None:
        raise Skipped("none is known of this game")
    tally.theirs = "exp-a-spiel"
    found = measure(native, native.uniform()).exploitability
    tally.close("uniform play", "has exploitability {}", found, published, PUBLISHED_DIGITS)


class _Walk:
    """All of OpenSpiel's states after an opening: sequences, and what each end pays.

    A sequence is an action at an information set of one player, numbered from 1 on in the order
    of discovery; 0 is the empty one.
    """

    def __init__(self, origin: Any, native: NativeGame, opening: Sequence[int]) -> None:
        self.native, self.opening = native, opening
        self.numbers: tuple[dict[int, int], dict[int, int]] = ({}, {})  # of information sets
        self.before: tuple[list[int], list[int]] = ([], [])  # the sequence that leads to each
        self.on_opening: list[tuple[int, int, int]] = []  # player, information set, action
        self._ends: list[tuple[float, int, int]] = []  # payoff, the players' last sequences
        self._visit(origin.new_initial_state(), 1.0, (0, 0))
        self.payoffs = np.array([payoff for payoff, _, _ in self._ends])
        self.last = [np.array([end[1 + player] for end in self._ends]) for player in (0, 1)]

    def _visit(self, state: Any, chance: float, last: tuple[int, int]) -> None:
        if state.is_terminal():
            self._ends.append((chance * state.returns()[0], *last))
            return
        if state.is_chance_node():
            for action, probability in state.chance_outcomes():
                self._visit(state.child(action), chance * probability, last)
            return
        player, actions = state.current_player(), state.legal_actions()
        infoset = self.native.infoset_of(state, player)
        played = sum(step.player >= 0 for step in state.full_history())
        if played < len(self.opening):
            actions = [self.opening[played]]
            self.on_opening.append((player, infoset, actions[0]))
        number = self.numbers[player].setdefault(infoset, len(self.numbers[player]))
        if number == len(self.before[player]):
            self.before[player].append(last[player])
        for action in actions:
            sequence = number * self.native.num_actions + action + 1
            after = (sequence, last[1]) if player == 0 else (last[0], sequence)
            self._visit(state.child(action), chance, after)

    def play_opening(self, tables: Tables) -> None:
        """Let tables play the opening with certainty."""
        for player, infoset, action in self.on_opening:
            tables[player][infoset] = np.eye(self.native.num_actions)[action]

    def value(self, tables: Tables) -> float:
        """What player 0 wins."""
        reach = [self._reach(player, tables[player]) for player in (0, 1)]
        return float(self.payoffs @ (reach[0][self.last[0]] * reach[1][self.last[1]]))

    def response_value(
        self, player: int, tables: Tables, response: Int8Array | None = None
    ) -> float:
        """What a response `(I_p,)` wins after the opening, by default the best one."""
        other, actions = 1 - player, self.native.num_actions
        won = (1 - 2 * player) * self.payoffs * self._reach(other, tables[other])[self.last[other]]
        gain = np.bincount(self.last[player], won, 1 + len(self.before[player]) * actions)
        fixed = {infoset: action for owner, infoset, action in self.on_opening if owner == player}
        for infoset, number in reversed(self.numbers[player].items()):
            legal = np.flatnonzero(self.native.legal(player, infoset, infoset + 1)[0])
            if infoset in fixed:
                legal = np.array([fixed[infoset]])
            elif response is not None:
                legal = response[infoset : infoset + 1].astype(np.intp)
            gain[self.before[player][number]] += gain[number * actions + 1 + legal].max()
        return float(gain[0])

    def _reach(self, player: int, table: Any) -> Float64Array:
        """The owner's probability of each sequence."""
        actions = self.native.num_actions
        reach = np.ones(1 + len(self.before[player]) * actions)
        for infoset, number in self.numbers[player].items():  # parents come first
            row = table[infoset].astype(np.float64)
            first = number * actions + 1
            reach[first : first + actions] = reach[self.before[player][number]] * row / row.sum()
        return reach


def _opening(game: Game, seed: int, done: Callable[[Any], bool]) -> tuple[int, ...]:
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
            return tuple(actions)


def _states(settings: Settings) -> Iterator[Any]:
    """All states of a small game, those of random hands of a large one."""
    game = _game(settings)
    if _is_small(_native(settings)):
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


def _decisions(settings: Settings) -> Iterator[tuple[Any, int, int]]:
    """States in which a player acts, with the player and our information set."""
    native = _native(settings)
    for state in _states(settings):
        player = state.current_player()
        if player >= 0:
            yield state, player, native.infoset_of(state, player)


def _where(state: Any) -> str:
    return f"player {state.current_player()} after {state.history()}"


def _is_small(native: NativeGame) -> bool:
    return sum(native.num_infosets) <= SMALL


@cache
def _native_of(game: Game) -> NativeGame:
    native = game.native or game.source.native()
    if native is None:
        raise ValueError("these checks need a native game")
    return native


def _native(settings: Settings) -> NativeGame:
    return _native_of(_game(settings))


def _game(settings: Settings) -> Game:
    if settings.game is None:
        raise ValueError("these checks need a game")
    return settings.game
