"""Short names of poker endgames: `river(board=7dJc3s9hQd,pot=2000)` and `turn(...)`.

| parameter | meaning | default |
|---|---|---|
| `board` | five cards on the river, four on the turn, e.g. `7dJc3s9hQd` | required |
| `pot` | OpenSpiel's `potSize` | 2000 |
| `blinds` | instead of `pot`: the chips that each player has in the pot | |
| `stack` | each player's chips at the start of the hand | 20000 |
| `bets` | `fc`, `fcpa` (pot bets and all-in), `fchpa` (half-pot bets too) or `fullgame` | `fcpa` |
| `handReaches` | weights of both players' hands, as in OpenSpiel | all equal |
"""

from typing import NamedTuple

from kuhn_bridge.errors import GameError

ENDGAMES = {"river": 5, "turn": 4}  # cards on the board
FLOP = "flop"  # what users try, too
RANKS = "23456789TJQKA"
SUITS = "cdhs"
BETS = ("fc", "fcpa", "fchpa", "fullgame")
DEFAULT_POT = 2_000
DEFAULT_STACK = 20_000
_PARAMETERS = ("board", "pot", "blinds", "stack", "bets", "handReaches")


class _Endgame(NamedTuple):
    """The parameters of a short name."""

    round_name: str
    board: str
    pot: int
    blinds: int  # 0 if the pot is given
    stack: int
    bets: str
    hand_reaches: str


def is_short_name(name: str) -> bool:
    """Whether a name is that of an endgame."""
    return name.partition("(")[0] in (*ENDGAMES, FLOP)


def full_name(name: str) -> str:
    """OpenSpiel's string of a short name; any other name as it is."""
    if not is_short_name(name):
        return name
    endgame = _parsed(name)
    if endgame.blinds:
        # All cards of the board are there from the start of the only round (or the first of two).
        to_come = "0" if endgame.round_name == "river" else "1"
        rounds = 1 if endgame.round_name == "river" else 2
        before = (
            f"numRounds={rounds},blind={endgame.blinds} {endgame.blinds},firstPlayer=1 1,"
            f"numBoardCards={ENDGAMES[endgame.round_name]} {to_come},"
        )
        after = ""
    else:
        before = "numRounds=4,blind=100 50,firstPlayer=2 1 1 1,numBoardCards=0 3 1 1,"
        after = f",potSize={endgame.pot}"
    reaches = f",handReaches={endgame.hand_reaches}" if endgame.hand_reaches else ""
    return (
        f"universal_poker(betting=nolimit,numPlayers=2,{before}numSuits=4,numRanks=13,"
        f"numHoleCards=2,stack={endgame.stack} {endgame.stack},bettingAbstraction={endgame.bets}"
        f"{after},boardCards={endgame.board}{reaches})"
    )


def _parsed(name: str) -> _Endgame:
    round_name, _, inside = name.partition("(")
    if round_name == FLOP:
        raise GameError(
            "a flop has too many boards to come; there are river(board=7dJc3s9hQd) with five cards "
            "and turn(board=7dJc3s9h) with four"
        )
    settings: dict[str, str] = {}
    if inside:
        if not inside.endswith(")"):
            raise GameError(f"{name} has no closing bracket")
        for part in filter(None, inside[:-1].split(",")):
            key, _, value = part.partition("=")
            settings[key.strip()] = value.strip()
    for key in settings:
        if key not in _PARAMETERS:
            raise GameError(
                f"{round_name} has no parameter {key!r}; want {', '.join(_PARAMETERS)} "
                "(an endgame is between two players, with the full deck)"
            )
    board = settings.get("board", "")
    _require_board(round_name, board)
    stack = _chips("stack", settings.get("stack", str(DEFAULT_STACK)))
    pot = _chips("pot", settings.get("pot", str(DEFAULT_POT)))
    blinds = 0
    if "blinds" in settings:
        if "pot" in settings:
            raise GameError("give pot or blinds, not both")
        blinds = _chips("blinds", settings["blinds"])
        pot = 2 * blinds
    if pot % 2:
        raise GameError(f"pot must be even, since both players have put in half; got {pot}")
    if pot >= 2 * stack:
        raise GameError(
            f"a pot of {pot} leaves no chips to bet with: it must be below {2 * stack}, since both "
            f"players put half of it in from stacks of {stack}"
        )
    bets = settings.get("bets", "fcpa")
    if bets not in BETS:
        raise GameError(f"bets must be one of {', '.join(BETS)}; got {bets!r}")
    return _Endgame(
        round_name=round_name,
        board=board,
        pot=pot,
        blinds=blinds,
        stack=stack,
        bets=bets,
        hand_reaches=settings.get("handReaches", ""),
    )


def _require_board(round_name: str, board: str) -> None:
    """Raise a `GameError` unless the board has the right number of different cards."""
    cards = [board[i : i + 2] for i in range(0, len(board), 2)]
    for card in cards:
        if len(card) < 2 or card[0] not in RANKS or card[1] not in SUITS:
            raise GameError(
                f"unknown card {card!r} in board={board}; a card is one of {RANKS} and one of "
                f"{SUITS}, e.g. 7d"
            )
    repeated = [card for card in cards if cards.count(card) > 1]
    if repeated:
        raise GameError(f"{repeated[0]} is twice in board={board}")
    want = ENDGAMES[round_name]
    if len(cards) != want:
        what = f"{len(cards)} cards"
        if len(cards) == 3:
            what = "3, a flop, which has too many boards to come"
        raise GameError(
            f"{round_name} needs a board of {want} cards, e.g. "
            f"{'7dJc3s9hQd'[: 2 * want]}; got {what} (river takes 5 cards, turn takes 4)"
        )


def _chips(key: str, text: str) -> int:
    if not text.isascii() or not text.isdigit() or int(text) == 0:
        raise GameError(f"{key} must be a positive number of chips; got {text!r}")
    return int(text)
