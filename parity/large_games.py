"""The checks of `--game NAME` for large games with an exact measure: rules, tensors and measures.

Small versions of these games are walked through exhaustively on OpenSpiel's states, large ones are
sampled. Policies of a large version are measured *after an opening*: random actions that both
players' policies play with certainty, after which few enough histories are left.
"""

import copy
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from typing import Any, NamedTuple, TypeAlias

import numpy as np

from algorithms import public_tree
from algorithms.compiled.nashconv import evaluate_policy
from algorithms.games import Game, large_game
from algorithms.large_games.large_game import LargeExactGame
from algorithms.large_games.liars_dice import LiarsDice
from algorithms.large_games.phantom.game import PhantomGame
from algorithms.large_games.poker import PokerEndgame
from algorithms.large_games.solver import Tables
from algorithms.nashconv import Measure
from algorithms.tree import CHANCE, TERMINAL, Tree, TreeBuilder, Visit
from parity import registry
from parity.reference import phantom_walk
from parity.registry import CheckSettings, Group, Skipped, Tally

LARGE_GAMES = Group(registry.LARGE_GAMES)
EXACT = 1e-12
PUBLISHED_DIGITS = 5e-7  # half a unit of the last digit
SMALL = 6_000  # information sets; OpenSpiel's states of such games take seconds
# Random episodes of a large game.
EPISODES = 300
EPISODES_QUICK = 40
# Deals of a poker endgame of the full deck.
DEALS = 20
DEALS_QUICK = 3
DEAL_CHIPS = 1_000  # differences are relative to so many chips
LATE = 5  # legal actions of the player to act at the end of an opening
OPENING = 4  # actions before the walk over histories, which is compiled
# Exploitability of uniform play: exp-a-spiel; Rudolph et al., ICLR 2026. By the numbers of
# information sets of both players.
PUBLISHED = {
    (3_683_314, 2_307_355): 0.788732,
    (14_482_810, 8_827_459): 0.619334,
    (3_720_850, 2_352_067): 0.916402,
    (16_497_034, 10_828_243): 0.762605,
    (7_864_320, 7_864_320): 0.890598,
}

PolicyRows: TypeAlias = Callable[[Any], Any]
"""The rows `(n, A)` of one player's policy at information sets `(n,)`."""
Reference: TypeAlias = Callable[[Sequence[PolicyRows]], Measure]
"""Measures two players' policies after an opening: `values` and `best_values`."""


# ---------------------------------------------------------------------------------------------
# Rules
# ---------------------------------------------------------------------------------------------


@LARGE_GAMES.check("rules", "actors, legal actions, ends and payoffs by our rules")
def check_rules(tally: Tally, settings: CheckSettings) -> None:
    """Every state of a small game, random episodes of a large one."""
    form = exact_form(settings.game)
    for state in _states(settings):
        place = f"after {state.history()}"
        ours = _position(form, state.history())
        tally.same(place, "lets {} act", ours.player, state.current_player())
        if state.is_terminal():
            tally.same(place, "pays {}", ours.returns, state.returns())
        elif state.is_chance_node():
            tally.same(place, "deals {}", ours.actions, state.legal_actions())
        else:
            tally.same(place, "allows {}", ours.actions, state.legal_actions())


class Position(NamedTuple):
    """What our rules say after a history of OpenSpiel."""

    player: int  # also CHANCE or TERMINAL
    actions: list[int]  # legal ones, or the outcomes of chance
    returns: list[float]  # empty before the end


def _position(form: LargeExactGame, history: Sequence[int]) -> Position:
    """What the rules of a game say after a history."""
    if isinstance(form, LiarsDice | PokerEndgame):
        return _public_position(form, history)
    assert isinstance(form, PhantomGame)  # noqa: S101  # there are no others
    return _phantom_position(form, history)


def _phantom_position(form: PhantomGame, history: Sequence[int]) -> Position:
    position = 0
    end = phantom_walk.OPEN
    mover = 0
    for cell in history:
        mover = phantom_walk.player_to_move(position)
        position, _, end = phantom_walk.move(form.rules, position, cell)
    if end == phantom_walk.OPEN:
        player = phantom_walk.player_to_move(position)
        tried = phantom_walk.tried_cells(position, player)
        untried = [cell for cell in range(form.num_actions) if not tried >> cell & 1]
        return Position(player, untried, [])
    won = 0.0
    if end == phantom_walk.WIN:
        won = 1.0 if mover == 0 else -1.0
    return Position(TERMINAL, [], [won, -won])


def _public_position(form: LiarsDice | PokerEndgame, history: Sequence[int]) -> Position:
    """Chance deals both hands; the public tree says the rest, chance's later cards included."""
    tree = form.public_tree
    dealt = history[: _deals(form)]
    if len(dealt) < _deals(form):
        return Position(CHANCE, _possible_deals(form, dealt), [])
    node = 0
    for action in history[_deals(form) :]:
        edges = range(tree.first_edge[node], tree.first_edge[node + 1])
        edge = next((edge for edge in edges if tree.action[edge] == action), None)
        if edge is None:
            return Position(TERMINAL, [], [])
        target = int(tree.target[edge])
        if target < 0:
            won = _payoff(form, -1 - target, dealt)
            return Position(TERMINAL, [], [won, -won])
        node = target
    actions = sorted(tree.action[tree.first_edge[node] : tree.first_edge[node + 1]].tolist())
    player = int(tree.player[node])
    if player == public_tree.CHANCE:
        possible = _possible_deals(form, dealt)
        return Position(CHANCE, [card for card in actions if card in possible], [])
    return Position(player, actions, [])


def _deals(form: LiarsDice | PokerEndgame) -> int:
    """How many cards, or dice, chance deals before the first action."""
    return 2 * (form.rules.dice if isinstance(form, LiarsDice) else form.cards.hole)


def _possible_deals(form: LiarsDice | PokerEndgame, dealt: Sequence[int]) -> list[int]:
    """The next cards or dice that chance can deal."""
    if isinstance(form, LiarsDice):
        return list(range(len(form.rules.matches)))
    known = (*form.cards.board, *dealt)
    return [card for card in range(form.deck_size) if card not in known]


def _payoff(form: LiarsDice | PokerEndgame, rule: int, dealt: Sequence[int]) -> float:
    """Player 0's chips where the game ends by a rule."""
    tree = form.public_tree
    board = int(tree.rule_board[rule])
    each = len(dealt) // 2
    hands = tuple(sorted(dealt[:each])), tuple(sorted(dealt[each:]))
    if isinstance(form, LiarsDice):
        rolls = form.rules.rolls.tolist()
        numbers = [rolls.index([side + 1 for side in hand]) for hand in hands]
    else:
        numbers = [form.boards[board].hands.index(hand) for hand in hands]
    own, other = tree.strength[tree.rule_order[rule], numbers].tolist()
    win, tie, lose = tree.payoff[rule].tolist()
    kind = tree.rule[rule]
    if kind == public_tree.FOLD:
        paid = win
    elif kind == public_tree.COUNT:
        paid = win if own + other < tree.rule_quantity[rule] else lose
    elif own == other:
        paid = tie
    else:
        paid = win if own > other else lose
    # Rules contain chance's probability of the card that came.
    if isinstance(form, PokerEndgame) and board > 0:
        paid = round(paid / form.card_probability, 9)
    return float(paid) + 0.0


# ---------------------------------------------------------------------------------------------
# Information sets
# ---------------------------------------------------------------------------------------------


@LARGE_GAMES.check("tensors", "information state tensors of the player to act")
def check_tensors(tally: Tally, settings: CheckSettings) -> None:
    """Our observation of an information set is OpenSpiel's tensor of every state in it."""
    form = exact_form(settings.game)
    for decision in _decisions(settings):
        infoset = decision.infoset
        observations = form.tensors(decision.player, infoset, infoset + 1)
        tensor = decision.state.information_state_tensor(decision.player)
        tally.same(decision.place, "observes {}", observations[0].tolist(), tensor)


@LARGE_GAMES.check("masks", "legal actions of each information set")
def check_masks(tally: Tally, settings: CheckSettings) -> None:
    """The legal actions of an information set are OpenSpiel's in every state of it."""
    form = exact_form(settings.game)
    for decision in _decisions(settings):
        infoset = decision.infoset
        legal = form.legal(decision.player, infoset, infoset + 1)
        actions = np.flatnonzero(legal[0]).tolist()
        tally.same(decision.place, "allows {}", actions, decision.state.legal_actions())


@LARGE_GAMES.check("infosets", "one number per information set: what a player has seen and done")
def check_infosets(tally: Tally, settings: CheckSettings) -> None:
    """Information sets that differ have different numbers; in a small game all numbers are used."""
    form = exact_form(settings.game)
    knowledge: dict[tuple[int, int], Any] = {}  # by player and number
    numbers: dict[tuple[int, Any], int] = {}  # by player and knowledge
    for place, state, player, infoset in _decisions(settings):
        known = _knowledge(form, state, player)
        first_known = knowledge.setdefault((player, infoset), known)
        tally.same(place, f"has {{}} as information set {infoset}", first_known, known)
        first_number = numbers.setdefault((player, known), infoset)
        tally.same(place, f"gives {known} the number {{}}", infoset, first_number)
        count = form.num_infosets[player]
        tally.holds(place, f"{infoset} is below {count}", 0 <= infoset < count)
    if _is_small(form):
        phrase = "has {} information sets"
        tally.same("the whole game", phrase, sum(form.num_infosets), len(knowledge))


def _knowledge(form: LargeExactGame, state: Any, player: int) -> Any:
    """A player's observations and actions so far.

    In phantom games these are the cells that it tried, each taken or found to be held. OpenSpiel's
    string is not used: in classical dark hex it also has the number of all actions.
    """
    if not isinstance(form, PhantomGame):
        return state.information_state_string(player)
    tried = []
    cells = state.history()
    for number, step in enumerate(state.full_history()):
        if step.player == player:
            was_held = cells[number] in cells[:number]
            tried.append((cells[number], was_held))
    return tuple(tried)


# ---------------------------------------------------------------------------------------------
# Measures
# ---------------------------------------------------------------------------------------------


@LARGE_GAMES.check("measure", "values and best responses against a walk over OpenSpiel's states")
def check_measure(tally: Tally, settings: CheckSettings) -> None:
    """Random policies of a small game; of a large game, after an opening or for a few deals."""
    form = exact_form(settings.game)
    if isinstance(form, PokerEndgame) and not _is_small(form):
        _compare_deals(tally, settings, form)
        return
    _compare_measures(tally, settings, _tree_reference, _is_late)


def _compare_deals(tally: Tally, settings: CheckSettings, form: PokerEndgame) -> None:
    """Values and best responses if only one deal is possible, against a walk over its states."""
    rng = np.random.default_rng(0)
    tables = form.random(0)
    for _ in range(DEALS_QUICK if settings.quick else DEALS):
        state = settings.game.pyspiel_game.new_initial_state()
        while state.is_chance_node():
            state.apply_action(int(rng.choice(state.legal_actions())))
        place = f"random policy 0, deal {state.history()}"
        hands = [tuple(sorted(form.cards_seen(state, player))) for player in range(2)]
        weight = np.zeros_like(form.public_tree.weight)
        for player, hand in enumerate(hands):
            weight[player, form.boards[0].hands.index(hand)] = 1
        dealt = copy.copy(form)
        dealt.public_tree = form.public_tree._replace(weight=weight)
        measure = dealt.measure(tables)
        expected = _deal_values(form, tables, state)
        phrase = "lets player 0 win {}"
        tally.close(place, phrase, measure.values[0], expected.value, EXACT * DEAL_CHIPS)
        for player, best_value in enumerate(expected.best_values):
            phrase = f"has best value {{}} for player {player}"
            ours = measure.best_values[player]
            tally.close(place, phrase, ours, best_value, EXACT * DEAL_CHIPS)


class DealValues(NamedTuple):
    """What a policy wins in one deal, and what best responses to it win."""

    value: float  # player 0's
    best_values: tuple[float, float]


def _deal_values(form: PokerEndgame, tables: Tables, state: Any) -> DealValues:
    """Walk over all actions, and public cards, after a deal."""
    if state.is_terminal():
        won = state.returns()
        return DealValues(won[0], (won[0], won[1]))
    player = state.current_player()
    actions = state.legal_actions()
    if player == CHANCE:
        shares = [share for _, share in state.chance_outcomes()]
    else:
        row = tables[player][infoset_of(form, state)][actions].astype(np.float64)
        shares = (row / row.sum()).tolist()
    after = [_deal_values(form, tables, state.child(action)) for action in actions]
    pairs = list(zip(shares, after, strict=True))
    best_values = [sum(share * one.best_values[p] for share, one in pairs) for p in range(2)]
    if player != CHANCE:
        best_values[player] = max(one.best_values[player] for one in after)
    value = sum(share * one.value for share, one in pairs)
    return DealValues(value, (best_values[0], best_values[1]))


def _is_late(state: Any) -> bool:
    return len(state.legal_actions()) <= LATE


@LARGE_GAMES.check("walk", "values and best responses against a generic walk over histories")
def check_walk(tally: Tally, settings: CheckSettings) -> None:
    """As `check_measure`, but the walk is compiled, so the openings of large games are shorter."""
    if not isinstance(exact_form(settings.game), PhantomGame):
        raise Skipped("only phantom games have such a walk")
    tally.theirs = "the walk"
    _compare_measures(tally, settings, _walk_reference, _has_opened)


def _has_opened(state: Any) -> bool:
    return len(state.history()) == OPENING


def _compare_measures(
    tally: Tally,
    settings: CheckSettings,
    make_reference: Callable[[Game, Sequence[int]], Reference],
    opening_is_over: Callable[[Any], bool],
) -> None:
    """Compare random policies, in large games after an opening."""
    game = settings.game
    form = exact_form(game)
    for seed in range(1 if settings.quick else 3):
        tables = form.random(seed)
        place = f"random policy {seed}"
        opening: list[int] = []
        if not _is_small(form):
            opening = _random_opening(game, seed, opening_is_over)
            _play_opening(game, opening, tables)
            place += f", after {opening}"
        measure = form.measure(tables)
        reference = make_reference(game, opening)
        policies: list[PolicyRows] = [table.__getitem__ for table in tables]
        expected = reference(policies)
        tally.close(place, "lets player 0 win {}", measure.values[0], expected.values[0], EXACT)
        for player, best_response in enumerate(measure.best_responses):
            responding = list(policies)
            responding[player] = _pure_rows(best_response, form.num_actions)
            played_out = reference(responding).values[player]
            best_value = expected.best_values[player]
            phrase = f"lets player {player} win {{}} by its best response"
            tally.close(place, phrase, played_out, best_value, EXACT)
            if not opening:
                phrase = f"has best value {{}} for player {player}"
                tally.close(place, phrase, measure.best_values[player], best_value, EXACT)


def _pure_rows(actions: Any, num_actions: int) -> PolicyRows:
    """The policy that plays one action per information set, given as `(I_p,)`."""
    identity = np.eye(num_actions)
    return lambda infosets: identity[actions[infosets]]


def _random_opening(game: Game, seed: int, is_over: Callable[[Any], bool]) -> list[int]:
    """Random actions of the players until `is_over`, none of which ends the game."""
    rng = np.random.default_rng(seed)
    while True:
        state = game.pyspiel_game.new_initial_state()
        actions = []
        while not state.is_terminal() and (state.is_chance_node() or not is_over(state)):
            action = int(rng.choice(state.legal_actions()))
            if not state.is_chance_node():
                actions.append(action)
            state.apply_action(action)
        if not state.is_terminal():
            return actions


def _play_opening(game: Game, opening: Sequence[int], tables: Tables) -> None:
    """Change the tables: they play the opening with certainty, whatever chance deals."""
    form = exact_form(game)
    unvisited = [(game.pyspiel_game.new_initial_state(), list(opening))]
    while unvisited:
        state, actions = unvisited.pop()
        if state.is_chance_node():
            for outcome in state.legal_actions():
                unvisited.append((state.child(outcome), actions))
        elif actions:
            row = tables[state.current_player()][infoset_of(form, state)]
            row[:] = 0
            row[actions[0]] = 1
            unvisited.append((state.child(actions[0]), actions[1:]))


def tree_of_states(game: Game, opening: Sequence[int] = ()) -> Tree:
    """The tree of OpenSpiel's states that begin with an opening.

    Its keys are our numbers of the information sets.
    """
    form = exact_form(game)

    def visits(
        state: Any, opening: Sequence[int], depth: int, action: int, probability: float
    ) -> Iterator[Visit]:
        """Each node before its children; a player follows the rest of the opening."""
        player = state.current_player()
        if player == TERMINAL:
            yield Visit(depth, player, action, probability, returns=state.returns())
        elif player == CHANCE:
            yield Visit(depth, player, action, probability)
            for outcome, share in state.chance_outcomes():
                yield from visits(state.child(outcome), opening, depth + 1, outcome, share)
        else:
            legal = opening[:1] or state.legal_actions()
            key = str(infoset_of(form, state))
            yield Visit(depth, player, action, probability, key, legal)
            for move in legal:
                yield from visits(state.child(move), opening[1:], depth + 1, move, 1.0)

    root = game.pyspiel_game.new_initial_state()
    builder = TreeBuilder(game.name, 2, form.num_actions)
    return builder.build(visits(root, opening, depth=0, action=-1, probability=1.0))


def _tree_reference(game: Game, opening: Sequence[int]) -> Reference:
    """Measures on a tree of OpenSpiel's states."""
    tree = tree_of_states(game, opening)
    numbers = np.array([int(key) for key in tree.keys])  # (I,): ours
    is_free = tree.legal.sum(axis=1) > 1  # (I,); in the opening one action is left

    def measure(policies: Sequence[PolicyRows]) -> Measure:
        table = tree.legal.astype(np.float64)
        for player, rows_of in enumerate(policies):
            infosets = is_free & (tree.owner == player)
            table[infosets] = rows_of(numbers[infosets])
        table /= table.sum(axis=1, keepdims=True)
        return evaluate_policy(tree, table)

    return measure


def _walk_reference(game: Game, opening: Sequence[int]) -> Reference:
    """Measures by the compiled walk over all histories after an opening."""
    form = exact_form(game)
    tries = phantom_walk.find_tries(form.rules, opening)

    def measure(policies: Sequence[PolicyRows]) -> Measure:
        rows = phantom_walk.policies_of(tries, form.sequences, policies)
        return phantom_walk.walk(form.rules, tries, rows)

    return measure


@LARGE_GAMES.check("published", "uniform play's exploitability against published figures")
def check_published(
    tally: Tally, settings: CheckSettings, *, figures: dict[Any, float] = PUBLISHED
) -> None:
    """Six digits, in the five benchmark games."""
    form = exact_form(settings.game)
    published = figures.get(form.num_infosets)
    if published is None:
        raise Skipped("no figure is published for this game")
    tally.theirs = "exp-a-spiel"
    exploitability = form.measure(form.uniform()).exploitability
    phrase = "has exploitability {}"
    tally.close("uniform play", phrase, exploitability, published, PUBLISHED_DIGITS)


# ---------------------------------------------------------------------------------------------
# OpenSpiel's states
# ---------------------------------------------------------------------------------------------


def _states(settings: CheckSettings) -> Iterator[Any]:
    """All states of a small game, those of random episodes of a large one."""
    game = settings.game
    if _is_small(exact_form(game)):
        yield from _all_states(game)
    else:
        yield from _random_states(game, EPISODES_QUICK if settings.quick else EPISODES)


def _all_states(game: Game) -> Iterator[Any]:
    unvisited = [game.pyspiel_game.new_initial_state()]
    while unvisited:
        state = unvisited.pop()
        yield state
        unvisited += [state.child(action) for action in state.legal_actions()]


def _random_states(game: Game, episodes: int) -> Iterator[Any]:
    """Every other episode plays one of the first three actions, so it is long."""
    rng = np.random.default_rng(0)
    for episode in range(episodes):
        first_actions = 3 if episode % 2 else None
        state = game.pyspiel_game.new_initial_state()
        while not state.is_terminal():
            yield state
            action = rng.choice(state.legal_actions()[:first_actions])
            state = state.child(int(action))
        yield state


class Decision(NamedTuple):
    """An OpenSpiel state in which a player acts."""

    place: str
    state: Any
    player: int
    infoset: int  # our number


def _decisions(settings: CheckSettings) -> Iterator[Decision]:
    form = exact_form(settings.game)
    for state in _states(settings):
        player = state.current_player()
        if player >= 0:
            place = f"player {player} after {state.history()}"
            yield Decision(place, state, player, infoset_of(form, state))


def infoset_of(form: LargeExactGame, state: Any) -> int:
    """The number of the information set of the player to act in an OpenSpiel state."""
    tensor = np.array([state.information_state_tensor()], np.float32)
    return int(form.find_infosets(state.current_player(), tensor)[0])


def _is_small(form: LargeExactGame) -> bool:
    return sum(form.num_infosets) <= SMALL


@cache
def exact_form(game: Game) -> Any:
    """The form of a game that is measured without a tree, also of one that fits a tree."""
    if isinstance(game, LargeExactGame):
        return game
    return large_game(game.pyspiel_game, game.name)
