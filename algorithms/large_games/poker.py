"""Two-player endgames of poker: OpenSpiel's `universal_poker` with at most one card to come.

Rules are not written twice. The public tree is read from OpenSpiel's own states, and so are the
payoffs and the order of the hands:

- A few deals are played through all public actions at once. Legal actions, players to act and the
  ends must be the same for all of them, since the public tree does not depend on the cards. The
  deals are chosen so that in one of them player 0 wins the showdown, in one it loses, and in one
  they tie; returns at the ends are the payoffs.
- Hands are sorted by showdowns. Two hands that share a card cannot meet, so that card is put on the
  board of another game, in which each player holds one card: all cards of a player and the board
  together make its poker hand, and who holds them does not matter.

OpenSpiel's deals are uniform over all pairs of hands that share no card, or have the weights
`handReaches`.
"""

import random
from collections.abc import Mapping, Sequence
from functools import cached_property, cmp_to_key
from itertools import combinations, pairwise, product
from typing import Any, NamedTuple

import numpy as np

from algorithms.games.game import PyspielGame, PyspielState
from algorithms.large_games.private_hands import PrivateHandsGame
from algorithms.public_tree import CHANCE, FOLD, SHOWDOWN, PublicTree
from algorithms.support.arrays import Float32Array, Float64Array, Int32Array, Int64Array
from kuhn_bridge.errors import GameError

# OpenSpiel's action IDs.
FOLD_ID = 0
CALL_ID = 1  # also a check
BET_ID = 2  # the pot, or the fixed amount of a limit game
ALL_IN_ID = 3
HALF_POT_ID = 4

SUIT_SYMBOLS = {"c": "♣", "d": "♦", "h": "♥", "s": "♠"}
NUM_PAIRS = 1_326  # hands of two cards of the full deck
MAX_BYTES = 4 * 2**30  # bytes of a solver's arrays
MAX_NODES = 100_000  # of the public tree
_PROBES = 100
_BYTES_PER_NUMBER = 40  # of one action with one hand: tables, a predictive solver, the walk

Hand = tuple[int, ...]  # cards in ascending order, numbered as in OpenSpiel's deck


class BettingTooLargeError(GameError):
    """The public tree is larger than is allowed."""


class Cards(NamedTuple):
    """The cards of a game."""

    suits: int
    ranks: int
    hole: int  # cards in a hand
    board: tuple[int, ...]  # cards on the board at the start
    to_come: int  # public cards that are dealt later: 0 or 1


class Board(NamedTuple):
    """A board and the hands that are possible on it."""

    cards: tuple[int, ...]
    hands: tuple[Hand, ...]
    strength: Int64Array  # (n,) equal for hands that tie; empty while a card is to come
    deals: tuple[tuple[Hand, Hand], ...]  # of player 0 and player 1: a win, a loss, a tie


class PublicNode(NamedTuple):
    """What players see at a node of the public tree, in OpenSpiel's terms."""

    actions: tuple[int, ...]  # since the deal, public cards included
    contributions: tuple[int, ...]  # each player's chips in the pot


def find_poker_endgame(game: PyspielGame, name: str) -> "PokerEndgame | None":
    """`universal_poker` of two players with at most one card to come; None for other games.

    Raises a `BettingTooLargeError` if the public tree is too large.
    """
    cards = endgame_cards(game)
    if cards is None:
        return None
    return PokerEndgame(game, cards, name=name)


def endgame_cards(game: PyspielGame) -> Cards | None:
    """The cards of an endgame that can be measured; None for any other game."""
    if game.get_type().short_name != "universal_poker" or game.num_players() != 2:
        return None
    settings = game.get_parameters()
    in_all = sum(int(number) for number in str(settings["numBoardCards"]).split())
    _require_possible(game)
    cards = Cards(
        suits=settings["numSuits"],
        ranks=settings["numRanks"],
        hole=settings["numHoleCards"],
        board=board_of(game),
        to_come=in_all - len(board_of(game)),
    )
    if cards.hole not in (1, 2) or cards.to_come not in (0, 1):
        return None
    return cards


def _require_possible(game: PyspielGame) -> None:
    """Raise a `GameError` for a board or a pot that OpenSpiel takes, but cannot play."""
    settings = game.get_parameters()
    text = str(settings["boardCards"])
    names = card_names(game)
    cards = [text[i : i + 2] for i in range(0, len(text), 2)]
    for card in cards:
        if card not in names:
            raise GameError(f"unknown card {card!r} in boardCards={text}; want {' '.join(names)}")
        if cards.count(card) > 1:
            raise GameError(f"{card} is twice in boardCards={text}")
    reaches = str(settings["handReaches"]).split()
    if reaches and len(reaches) != 2 * NUM_PAIRS:
        raise GameError(
            f"handReaches has {len(reaches):,} numbers; want {2 * NUM_PAIRS:,}: one for each of "
            f"{NUM_PAIRS:,} hands of player_0, then of player_1"
        )
    for reach in reaches:
        if not _is_weight(reach):
            raise GameError(f"handReaches needs numbers from 0 up; got {reach!r}")
    pot = settings["potSize"]
    if pot % 2:
        raise GameError(f"potSize must be even, since both players have put in half; got {pot}")
    if settings["betting"] == "nolimit":
        _require_chips(settings)


def _is_weight(text: str) -> bool:
    """Whether a text is a finite number that is not negative."""
    try:
        number = float(text)
    except ValueError:
        return False
    return 0 <= number < float("inf")


def _require_chips(settings: Mapping[str, Any]) -> None:
    """Raise a `GameError` unless some player has chips to bet with: otherwise OpenSpiel hangs."""
    stacks = [int(stack) for stack in str(settings["stack"]).split()]
    pot = settings["potSize"]
    if pot > 2 * min(stacks):
        raise GameError(
            f"a pot of {pot} is more than both players can have put in: stacks are {stacks}"
        )
    blinds = [int(blind) for blind in str(settings["blind"]).split()]
    put_in = [pot // 2, pot // 2] if pot else blinds
    if all(chips >= stack for chips, stack in zip(put_in, stacks, strict=True)):
        raise GameError(
            f"nobody has chips to bet with: {put_in} are in the pot, and stacks are {stacks}"
        )


def board_of(game: PyspielGame) -> tuple[int, ...]:
    """The cards on the board at the start, in ascending order."""
    text = str(game.get_parameters()["boardCards"])
    names = card_names(game)
    return tuple(sorted(names.index(text[i : i + 2]) for i in range(0, len(text), 2)))


def card_names(game: PyspielGame) -> tuple[str, ...]:
    """The names of the cards of the deck, e.g. `Ah`, by OpenSpiel's number."""
    settings = game.get_parameters()
    ranks = "23456789TJQKA"[: settings["numRanks"]]
    suits = "cdhs"[: settings["numSuits"]]
    return tuple(rank + suit for rank in ranks for suit in suits)


# ---------------------------------------------------------------------------------------------
# OpenSpiel's states
# ---------------------------------------------------------------------------------------------


class Dealer:
    """Makes OpenSpiel's states in which both hands are dealt."""

    def __init__(self, game: PyspielGame) -> None:
        self._initial_state = game.new_initial_state()
        self.by_pairs = bool(game.get_parameters()["handReaches"])

    def state(self, hands: Sequence[Sequence[int]], actions: Sequence[int] = ()) -> PyspielState:
        """The state after a deal, and after public actions."""
        state = self._initial_state.clone()
        if self.by_pairs:
            state.apply_action(pair_action(hands))
        else:
            for hand in hands:
                for card in hand:
                    state.apply_action(card)
        for action in actions:
            state.apply_action(action)
        return state


def pair_action(hands: Sequence[Sequence[int]]) -> int:
    """The chance action that deals both hands at once, in games with `handReaches`."""
    action = 0
    for hand in hands:
        for card in hand:
            action = 52 * action + card
    return action


class Showdowns:
    """Compares hands on a board by OpenSpiel's showdowns."""

    def __init__(self, game: PyspielGame, board: Sequence[int], hole: int) -> None:
        self._board = tuple(board)
        self._games = {
            size: _showdown_game(game, hole=size, board=len(board) + hole - size)
            for size in range(1, hole + 1)
        }

    def __call__(self, hand: Hand, other: Hand) -> int:
        """1, 0 or -1: whether a hand wins against another, ties or loses."""
        shared = set(hand) & set(other)
        if len(shared) == len(hand):
            return 0
        # Cards of both hands go to the board: it is the same poker hand.
        state = self._games[len(hand) - len(shared)].new_initial_state()
        for cards in (hand, other):
            for card in cards:
                if card not in shared:
                    state.apply_action(card)
        for card in (*self._board, *shared):
            state.apply_action(card)
        while not state.is_terminal():
            state.apply_action(CALL_ID)
        return int(np.sign(state.returns()[0]))


def _showdown_game(game: PyspielGame, *, hole: int, board: int) -> PyspielGame:
    """A game of hands of `hole` cards and `board` public cards, without bets."""
    import pyspiel

    settings = game.get_parameters()
    return pyspiel.load_game(
        "universal_poker(betting=nolimit,bettingAbstraction=fc,numPlayers=2,numRounds=1,"
        f"blind=100 100,firstPlayer=1 1,stack=200 200,numSuits={settings['numSuits']},"
        f"numRanks={settings['numRanks']},numHoleCards={hole},numBoardCards={board} 0)"
    )


def possible_hands(cards: Cards, board: Sequence[int]) -> tuple[Hand, ...]:
    """All hands that share no card with a board, in the order of the deck."""
    deck = [card for card in range(cards.suits * cards.ranks) if card not in board]
    return tuple(combinations(deck, cards.hole))


def strengths(game: PyspielGame, board: Sequence[int], hands: Sequence[Hand]) -> Int64Array:
    """Numbers `(n,)` in the order of the hands' strengths, equal for hands that tie."""
    compare = Showdowns(game, board, len(hands[0]))

    def compare_numbers(one: int, other: int) -> int:
        return compare(hands[one], hands[other])

    order = sorted(range(len(hands)), key=cmp_to_key(compare_numbers))
    strength = np.zeros(len(hands), np.int64)
    for before, after in pairwise(order):
        is_stronger = compare(hands[after], hands[before])  # 1, or 0 if they tie
        strength[after] = strength[before] + is_stronger
    return strength


def typical_deals(hands: Sequence[Hand], strength: Int64Array) -> tuple[tuple[Hand, Hand], ...]:
    """Deals in which player 0 wins, loses and ties, as far as there are such deals."""
    weakest_first = np.argsort(strength, kind="stable").tolist()
    deals: list[tuple[Hand, Hand]] = []
    for low, high in product(weakest_first, reversed(weakest_first)):
        if strength[low] < strength[high] and _can_meet(hands[low], hands[high]):
            deals.append((hands[high], hands[low]))
            deals.append((hands[low], hands[high]))
            break
    for one, other in combinations(weakest_first, 2):
        if strength[one] == strength[other] and _can_meet(hands[one], hands[other]):
            deals.append((hands[one], hands[other]))
            break
    return tuple(deals)


def _can_meet(one: Hand, other: Hand) -> bool:
    """Whether two hands share no card."""
    return not set(one) & set(other)


# ---------------------------------------------------------------------------------------------
# The public tree
# ---------------------------------------------------------------------------------------------


class _Rule(NamedTuple):
    """A payoff rule of the public tree."""

    kind: int
    board: int
    payoff: tuple[float, float, float]


class _Betting:
    """The public tree while it is read, depth first, from OpenSpiel's states."""

    def __init__(self, game: PyspielGame, cards: Cards, boards: Sequence[Board]) -> None:
        self._dealer = Dealer(game)
        self._cards = cards
        self._boards = boards
        unknown = cards.suits * cards.ranks - len(cards.board) - 2 * cards.hole
        self.card_probability = 1 / unknown if cards.to_come else 1.0
        hands = len(boards[0].hands)
        self._most_edges = MAX_BYTES // (_BYTES_PER_NUMBER * hands)
        self.nodes: list[PublicNode] = []
        self.player: list[int] = []
        self.depth: list[int] = []
        self.level: list[tuple[int, int]] = []
        self.board: list[int] = []
        self.edges: list[dict[int, int]] = []  # by node: action to target
        self.tensors: list[Float32Array] = []
        self.rules: dict[_Rule, int] = {}
        self.num_edges = 0
        deals = boards[-1].deals if cards.to_come else boards[0].deals
        self._visit([self._dealer.state(deal) for deal in deals], (), 0, (0, 0), 0)

    def _visit(
        self,
        states: Sequence[PyspielState],
        actions: tuple[int, ...],
        depth: int,
        level: tuple[int, int],
        board: int,
    ) -> int:
        """Add the node of these states, one per deal, and all nodes behind it; its number."""
        number = len(self.nodes)
        state = states[0]
        player = CHANCE if state.is_chance_node() else int(state.current_player())
        legal = self._cards_to_come() if player == CHANCE else state.legal_actions()
        self._require_room(len(legal))
        contributions = tuple(state.to_struct().player_contributions)
        self.nodes.append(PublicNode(actions, contributions))
        self.player.append(player)
        self.depth.append(depth)
        self.level.append(level)
        self.board.append(board)
        self.tensors.append(self._public_tensor(states, player))
        targets: dict[int, int] = {}
        self.edges.append(targets)

        for place, action in enumerate(legal):
            next_actions = (*actions, action)
            if player == CHANCE:
                # Which hands win depends on the card that comes, so other hands are dealt.
                next_board = 1 + place
                deals = self._boards[next_board].deals
                after = [self._dealer.state(deal, next_actions) for deal in deals]
                next_level = level[0] + 1, level[1] + 1
            else:
                next_board = board
                after = [state.child(action) for state in states]
                next_level = level[0] + (player == 0), level[1] + (player == 1)
            _require_same(after)
            if after[0].is_terminal():
                ends_by_fold = player != CHANCE and action == FOLD_ID
                targets[action] = self._rule(after, next_board, ends_by_fold)
            else:
                targets[action] = self._visit(
                    after, next_actions, depth + 1, next_level, next_board
                )
        return number

    def _require_room(self, actions: int) -> None:
        """Count the actions of one more node; an error if there are too many."""
        self.num_edges += actions
        if self.num_edges <= self._most_edges and len(self.nodes) <= MAX_NODES:
            return
        hands = len(self._boards[0].hands)
        estimate = estimated_public_nodes(self._dealer.state(self._boards[-1].deals[0]))
        raise BettingTooLargeError(
            f"the betting tree is too large: random play suggests {estimate:.0e} public states "
            f"with {hands:,} hands each, and {self._most_edges:,} actions in all are possible"
        )

    def _cards_to_come(self) -> list[int]:
        """The public cards that can be dealt, whatever the hands."""
        deck = range(self._cards.suits * self._cards.ranks)
        return [card for card in deck if card not in self._cards.board]

    def _public_tensor(self, states: Sequence[PyspielState], player: int) -> Float32Array:
        """The information state tensor of the player to act, without its hand."""
        observer = max(player, 0)  # somebody's, at chance
        own_cards = slice(2, 2 + self._cards.suits * self._cards.ranks)
        tensors = []
        for state in states:
            tensor = np.array(state.information_state_tensor(observer), np.float32)
            tensor[own_cards] = 0
            tensors.append(tensor)
        if any(not np.array_equal(tensor, tensors[0]) for tensor in tensors):
            raise GameError("players see more of the deal than their own cards and the board")
        return tensors[0]

    def _rule(self, states: Sequence[PyspielState], board: int, ends_by_fold: bool) -> int:
        """The target of an edge behind which the game ends."""
        returns = [float(state.returns()[0]) for state in states]
        win = max(returns)
        lose = min(returns)
        tie = 0.0
        if ends_by_fold and win != lose:
            raise GameError("a fold pays differently for different hands")
        if ends_by_fold:
            tie = win
        elif len(returns) in (1, 3):  # the last deal is a tie
            tie = returns[-1]
        scale = self.card_probability if board > 0 else 1.0
        kind = FOLD if ends_by_fold else SHOWDOWN
        rule = _Rule(kind, board, (scale * win, scale * tie, scale * lose))
        return -1 - self.rules.setdefault(rule, len(self.rules))


def estimated_public_nodes(dealt: PyspielState) -> float:
    """An estimate of the number of public states: the mean of products of branches (Knuth 1975)."""
    random_play = random.Random(0)
    total = 0.0
    for _ in range(_PROBES):
        state = dealt.clone()
        width = 1.0
        while not state.is_terminal():
            total += width
            actions = state.legal_actions()
            width *= len(actions)
            state.apply_action(random_play.choice(actions))
    return total / _PROBES


def _require_same(states: Sequence[PyspielState]) -> None:
    """Raise an error unless the same happens in all of these states, one per deal."""
    kinds = {
        (
            int(state.current_player()),
            () if state.current_player() < 0 else tuple(state.legal_actions()),
        )
        for state in states
    }
    if len(kinds) > 1:
        raise GameError("the betting depends on the cards")


def read_boards(game: PyspielGame, cards: Cards) -> list[Board]:
    """The board at the start, and behind it one board per card that can come."""
    if not cards.to_come:
        return [_full_board(game, cards, cards.board)]
    boards = [
        Board(cards.board, possible_hands(cards, cards.board), np.empty(0, np.int64), deals=())
    ]
    for card in range(cards.suits * cards.ranks):
        if card not in cards.board:
            boards.append(_full_board(game, cards, (*cards.board, card)))
    return boards


def _full_board(game: PyspielGame, cards: Cards, board: tuple[int, ...]) -> Board:
    hands = possible_hands(cards, board)
    strength = strengths(game, board, hands)
    return Board(board, hands, strength, typical_deals(hands, strength))


def hand_weights(game: PyspielGame, cards: Cards, hands: Sequence[Hand]) -> Float64Array:
    """The weights of both players' hands, whose products are the probabilities of deals: `(2, n)`.

    `handReaches` numbers pairs of cards by rank, and by suit from spades to clubs.
    """
    weight = np.ones((2, len(hands)))
    reaches = [float(number) for number in str(game.get_parameters()["handReaches"]).split()]
    if reaches:
        number_of = _reach_numbers()
        for i, hand in enumerate(hands):
            weight[0, i] = reaches[number_of[hand]]
            weight[1, i] = reaches[NUM_PAIRS + number_of[hand]]

    # Weights are scaled so that the probabilities of all deals sum to 1.
    holds = np.zeros((len(hands), cards.suits * cards.ranks))  # which cards each hand has
    for i, hand in enumerate(hands):
        holds[i, list(hand)] = 1
    can_meet = holds @ holds.T == 0  # (n, n)
    total = float(weight[0] @ can_meet @ weight[1])
    if total <= 0:
        raise GameError("handReaches leave no pair of hands that can be dealt")
    weight[0] /= total
    return weight


def _reach_numbers() -> dict[Hand, int]:
    """The place of each pair of cards among the 1,326 numbers of a player in `handReaches`.

    Pairs are in ascending order, with cards by rank, and by suit from spades to clubs: 2♠2♥ is the
    first one, 2♠2♦ the second. Here a hand's cards are numbered as in OpenSpiel's deck, from 2♣ on.
    """
    in_order = [4 * rank + 3 - suit for rank in range(13) for suit in range(4)]
    numbers: dict[Hand, int] = {}
    for number, (one, other) in enumerate(combinations(in_order, 2)):
        numbers[min(one, other), max(one, other)] = number
    return numbers


def make_public_tree(
    betting: _Betting, boards: Sequence[Board], weight: Float64Array
) -> PublicTree:
    """The arrays of a public tree that has been read."""
    # Edges, in the order of their nodes; a node's parent edge is the one that leads to it.
    first_edge = np.cumsum([0, *(len(targets) for targets in betting.edges)])
    actions = [action for targets in betting.edges for action in targets]
    target = np.array([end for targets in betting.edges for end in targets.values()], np.int32)
    parent_edge = np.full(len(betting.nodes), -1, np.int32)
    inner = np.flatnonzero(target >= 0)
    parent_edge[target[inner]] = inner

    # Information sets are numbered by node, in the order of the walk.
    player = np.array(betting.player, np.int8)
    board = np.array(betting.board, np.int32)
    num_hands = np.array([len(board.hands) for board in boards], np.int32)
    first_infoset = np.full(len(player), -1, np.int64)
    for seat in range(2):
        seat_nodes = np.flatnonzero(player == seat)
        counts = num_hands[board[seat_nodes]]
        first_infoset[seat_nodes] = np.cumsum(counts) - counts

    rules = list(betting.rules)
    rule_board = np.array([rule.board for rule in rules], np.int32)
    hands = _hand_arrays(boards)
    return PublicTree(
        player=player,
        depth=np.array(betting.depth, np.int16),
        level=np.array(betting.level, np.int16),
        board=board,
        first_edge=first_edge.astype(np.int32),
        first_infoset=first_infoset,
        parent_edge=parent_edge,
        action=np.array(actions, np.int32),
        target=target,
        num_hands=num_hands,
        cards=hands.cards,
        old_hand=hands.old_hand,
        weight=weight,
        rule=np.array([rule.kind for rule in rules], np.int8),
        rule_order=rule_board,  # one order of strength per board
        rule_board=rule_board,
        rule_quantity=np.zeros(len(rules), np.int32),
        payoff=np.array([rule.payoff for rule in rules]),
        strength=hands.strength,
        by_strength=hands.by_strength,
    )


class _HandArrays(NamedTuple):
    """The hands of B boards, of which the first has most: n. See `PublicTree`."""

    cards: Int32Array  # (B, n, H)
    old_hand: Int32Array  # (B, n)
    strength: Int32Array  # (B, n)
    by_strength: Int32Array  # (B, n)


def _hand_arrays(boards: Sequence[Board]) -> _HandArrays:
    """The arrays of all boards; where a board has fewer hands, the rest is 0."""
    most = len(boards[0].hands)
    hole = len(boards[0].hands[0])
    arrays = _HandArrays(
        cards=np.zeros((len(boards), most, hole), np.int32),
        old_hand=np.zeros((len(boards), most), np.int32),
        strength=np.zeros((len(boards), most), np.int32),
        by_strength=np.zeros((len(boards), most), np.int32),
    )
    old_numbers = {hand: i for i, hand in enumerate(boards[0].hands)}
    for i, board in enumerate(boards):
        count = len(board.hands)
        arrays.cards[i, :count] = board.hands
        arrays.old_hand[i, :count] = [old_numbers[hand] for hand in board.hands]
        if len(board.strength):  # no card is to come
            arrays.strength[i, :count] = board.strength
            arrays.by_strength[i, :count] = np.argsort(board.strength, kind="stable")
    return arrays


# ---------------------------------------------------------------------------------------------
# The game
# ---------------------------------------------------------------------------------------------


class PokerEndgame(PrivateHandsGame):
    """A poker endgame; hands are numbered in the order of OpenSpiel's deck.

    Observation, for a deck of C cards and a longest game of L actions:

    | index | meaning |
    |---|---|
    | 0, 1 | one-hot of the player |
    | then C | 1 for each own card |
    | then C | 1 for each card on the board |
    | then 2 L | two bits per action: call 10, bet 01, all-in 11, fold and deals 00 |
    | then L | the size of each bet, in chips |
    """

    def __init__(self, game: PyspielGame, cards: Cards, *, name: str) -> None:
        boards = read_boards(game, cards)
        betting = _Betting(game, cards, boards)
        weight = hand_weights(game, cards, boards[0].hands)
        self.cards = cards
        self.boards = boards
        self._dealer = Dealer(game)
        self.nodes = betting.nodes
        self.card_names = card_names(game)
        self.card_probability = betting.card_probability
        self._is_limit = game.get_parameters()["betting"] == "limit"
        self._sizes_are_actions = game.get_parameters()["bettingAbstraction"] == "fullgame"
        self._public_tensors = np.array(betting.tensors)  # (N, size)
        super().__init__(
            make_public_tree(betting, boards, weight),
            name=name,
            num_actions=game.num_distinct_actions(),
            observation_size=game.information_state_tensor_size(),
            pyspiel_game=game,
        )

    def first_state(self, draws: random.Random) -> PyspielState:
        """A state after the deal of both hands, without listing all deals."""
        if not self._dealer.by_pairs:
            return self._dealer.state(self._drawn_hands(draws))
        while True:
            hands = self.boards[0].hands
            (own,) = draws.choices(hands, cum_weights=self._running_weights[0])
            (other,) = draws.choices(hands, cum_weights=self._running_weights[1])
            if _can_meet(own, other):
                return self._dealer.state((own, other))

    def _drawn_hands(self, draws: random.Random) -> tuple[list[int], list[int]]:
        """Cards of both hands; drawing again after a repeated card is faster than `sample`."""
        hole = self.cards.hole
        deck = self._undealt
        count = len(deck)
        while True:
            dealt = [deck[int(draws.random() * count)] for _ in range(2 * hole)]
            if len(set(dealt)) == 2 * hole:
                return dealt[:hole], dealt[hole:]

    @cached_property
    def _undealt(self) -> list[int]:
        """The cards that are not on the board at the start."""
        return [card for card in range(self.deck_size) if card not in self.cards.board]

    @cached_property
    def _running_weights(self) -> list[list[float]]:
        """Running sums of the weights of each player's hands."""
        return [np.cumsum(weight).tolist() for weight in self.public_tree.weight]

    @property
    def pot(self) -> int:
        """The chips in the pot at the start."""
        return sum(self.nodes[0].contributions)

    @property
    def deck_size(self) -> int:
        """The number of cards in the deck."""
        return self.cards.suits * self.cards.ranks

    def chance_probability(self, node: int) -> float:
        """The probability of the public cards before a node, given the hands."""
        return self.card_probability if self.public_tree.board[node] > 0 else 1.0

    def tensors_at(self, player: int, infosets: Int64Array) -> Float32Array:
        """OpenSpiel's information state tensors at information sets `(m,)`: `(m, size)`."""
        nodes, hands = self.nodes_and_hands(player, infosets)
        seen = self._public_tensors[nodes]  # a copy
        cards = self.public_tree.cards[self.public_tree.board[nodes], hands]  # (m, H)
        np.put_along_axis(seen, 2 + cards.astype(np.int64), 1, axis=1)
        return seen

    @cached_property
    def _node_keys(self) -> tuple[Float64Array, Int64Array, Float64Array]:
        """A number for each decision's tensor, ascending; its node; and how to compute it."""
        factors = np.random.default_rng(0).random(self.observation_size)
        nodes = np.flatnonzero(self.public_tree.player != CHANCE)
        keys = self._public_tensors[nodes].astype(np.float64) @ factors
        order = np.argsort(keys)
        return keys[order], nodes[order], factors

    @cached_property
    def _hand_numbers(self) -> Int64Array:
        """The number of each hand by board and cards, -1 if it is impossible: `(B, C ** H)`."""
        powers = self.deck_size ** np.arange(self.cards.hole)
        numbers = np.full((len(self.boards), self.deck_size**self.cards.hole), -1)
        for i, board in enumerate(self.boards):
            numbers[i, np.array(board.hands) @ powers] = np.arange(len(board.hands))
        return numbers

    def find_infosets(self, player: int, tensors: Float32Array) -> Int64Array:
        """The information sets that have these tensors, `(m, observation_size)`: `(m,)`."""
        own_cards = slice(2, 2 + self.deck_size)
        public = np.array(tensors, np.float32)
        public[:, own_cards] = 0
        nodes = self._find_nodes(public)
        if not np.array_equal(self._public_tensors[nodes], public):
            raise GameError(f"not the observations of player_{player} in {self.name}")
        # The cards of each hand in ascending order, (m, H): those marked with 1 are sorted first.
        is_missing = tensors[:, own_cards] <= 0  # (m, C)
        cards = np.argsort(is_missing, axis=1, kind="stable")[:, : self.cards.hole]
        powers = self.deck_size ** np.arange(self.cards.hole)
        hands = self._hand_numbers[self.public_tree.board[nodes], cards @ powers]
        return np.asarray(self.public_tree.first_infoset[nodes] + hands)

    def _find_nodes(self, public: Float32Array) -> Int64Array:
        """The decisions with these tensors, `(m, size)` without own cards, or any others: `(m,)`.

        A key is a sum of random multiples of a tensor's numbers. Keys are the same up to rounding,
        so the nearest one is that of the decision.
        """
        keys, nodes, factors = self._node_keys
        wanted = public.astype(np.float64) @ factors  # (m,)
        after = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        before = np.maximum(after - 1, 0)
        is_before_nearer = np.abs(keys[before] - wanted) < np.abs(keys[after] - wanted)
        return nodes[np.where(is_before_nearer, before, after)]

    def next_node(self, node: int, action: int) -> int:
        """The node of the public tree after an action or a public card; below 0 at the end."""
        edge = self.public_tree.first_edge[node] + self.actions_at(node).tolist().index(action)
        return int(self.public_tree.target[edge])

    def infoset_of_state(self, state: PyspielState) -> int:
        """The information set of the player to act in an OpenSpiel state."""
        player = state.current_player()
        tensor = np.array([state.information_state_tensor(player)], np.float32)
        return int(self.find_infosets(player, tensor)[0])

    def cards_seen(self, state: PyspielState, player: int) -> list[int]:
        """A player's own cards in an OpenSpiel state."""
        tensor = state.information_state_tensor(player)[2 : 2 + self.deck_size]
        return [card for card, is_own in enumerate(tensor) if is_own]

    # Words

    def card_label(self, card: int) -> str:
        """A card, e.g. `A♥`."""
        name = self.card_names[card]
        return name[0] + SUIT_SYMBOLS[name[1]]

    def hand_label(self, player: int, node: int, hand: int) -> str:
        """A hand, the highest card first, e.g. `A♥9♠`."""
        del player
        cards = self.public_tree.cards[self.public_tree.board[node], hand]
        return "".join(self.card_label(int(card)) for card in sorted(cards, reverse=True))

    def public_label(self, node: int) -> str:
        """What has happened before a node, e.g. `after check, pot bet`."""
        words = []
        at = 0
        for action in self.nodes[node].actions:
            words.append(self._edge_label(at, action))
            at = self.next_node(at, action)
        return f"after {', '.join(words)}" if words else "to start"

    def _edge_label(self, node: int, action: int) -> str:
        """An action, or a public card, at a node."""
        player = int(self.public_tree.player[node])
        if player == CHANCE:
            return f"{self.card_label(action)} comes"
        return self.public_action_label(node, action)

    def public_action_label(self, node: int, action: int) -> str:
        """An action at a node of the public tree, e.g. `pot bet`."""
        contributions = self.nodes[node].contributions
        player = int(self.public_tree.player[node])
        faces_bet = contributions[player] < max(contributions)
        if action == FOLD_ID:
            return "fold"
        if action == CALL_ID:
            return "call" if faces_bet else "check"
        if self._sizes_are_actions:
            return f"raise to {action}" if faces_bet else f"bet {action}"
        raises = "raise" if faces_bet else "bet"
        if self._is_limit:
            return raises
        words = {BET_ID: f"pot {raises}", ALL_IN_ID: "all-in", HALF_POT_ID: f"half-pot {raises}"}
        return words.get(action, f"{raises} {action}")

    def action_label(self, infoset: int, action: int, player: int = 0) -> str:
        """An action at an information set in words, e.g. `pot bet`."""
        node, _ = self.node_and_hand(player, infoset)
        return self.public_action_label(node, action)
