"""The environments that learners train on, against the PettingZoo face."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.tree import TERMINAL
from algorithms.games import Game
from algorithms.games.kuhn import kuhn
from algorithms.learning.board import board_of, deal_of
from algorithms.learning.selfplay import SelfPlayEnv, SelfPlayVecEnv
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import INFORMATION_STATES, letters_to_actions
from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, Action, Card
from parity.registry import Settings, check
from parity.sides import hand
from parity.tally import Tally

GROUP = "faces"
Plan: TypeAlias = Mapping[str, Action]


@check("tables", GROUP, "the arrays of the fast environments, node by node")
def check_tables(tally: Tally, settings: Settings) -> None:
    """Actor, sight, mask and rewards of every node, from a walk of the AEC face of its own."""
    tally.theirs = "the AEC face"
    game, env = kuhn(), kuhn_v0.env()
    board = board_of(game)
    for root in board.deals.tolist():
        card0, card1 = map(Card, game.tree.history(root))
        deal = card0, card1
        for letters in BETTING:
            node = root
            env.reset(options={"cards": deal})
            for action in letters_to_actions(letters):
                node = board.first_child[node] + board.child[board.infoset[node], action]
                env.step(action)
            _compare_node(game, node, env, hand(deal, letters), tally)


def _compare_node(game: Game, node: int, env: Any, where: str, tally: Tally) -> None:
    board = board_of(game)
    over = all(env.terminations.values())
    actor = TERMINAL if over else AGENTS.index(env.agent_selection)
    tally.same(where, "has {} to act", int(board.player[node]), actor)
    rewards = list(map(float, env.rewards.values()))
    tally.same(where, "pays {}", board.returns[node].tolist(), rewards)
    if not over:
        row, seen = board.infoset[node], env.observe(AGENTS[actor])
        shown, mask = seen["observation"].tolist(), seen["action_mask"].astype(bool).tolist()
        tally.same(where, "shows {}", game.observations[row].tolist(), shown)
        for legal in (board.child[row] >= 0, game.tree.legal[row]):
            tally.same(where, "allows {}", legal.tolist(), mask)


@check(
    "selfplay", GROUP, "the vectorised self-play environment against the plain one, hand by hand"
)
def check_selfplay(tally: Tally, settings: Settings) -> None:
    """All deals and seats under every plan of the learner and of the other seat."""
    tally.theirs = "the plain one"
    game = kuhn()
    plain = [SelfPlayEnv(game, first=first) for first in range(_enough(game))]
    opponents = [*plans()][:: 5 if settings.quick else 1]
    for mine, theirs in product(plans(), opponents):
        vector = SelfPlayVecEnv(len(plain), game)
        vector.set_opponent(as_policy(theirs))
        seen: Any = vector.reset()
        for env in plain:
            env.set_opponent(as_policy(theirs))
        starts = [env.reset(options={"hand": first})[0] for first, env in enumerate(plain)]
        where = f"{_spelt(mine)} against {_spelt(theirs)}"
        for first, (mine_seen, right) in enumerate(zip(seen, starts, strict=True)):
            spot = f"{where}, {_hand(game, first)}"
            tally.same(spot, "shows {}", mine_seen.tolist(), right.tolist())
        running = np.ones(len(plain), bool)
        while running.any():
            masks = vector.env_method("action_masks")[0]
            actions = np.array([_planned(mine, row) for row in seen])
            seen, rewards, ended, infos = vector.step(actions)
            for first in np.flatnonzero(running).tolist():
                env, spot = plain[first], f"{where}, {_hand(game, first)}"
                tally.same(spot, "allows {}", masks[first].tolist(), env.action_masks().tolist())
                after, reward, over, _, _ = env.step(actions[first])
                last = infos[first]["terminal_observation"] if ended[first] else seen[first]
                tally.same(spot, "shows {}", last.tolist(), after.tolist())
                tally.same(spot, "pays {}", float(rewards[first]), reward)
                tally.same(spot, "is over: {}", bool(ended[first]), over)
            running &= ~ended


def _enough(game: Game) -> int:
    """How many hands it takes until every seat has had every deal."""
    board, dealt = board_of(game), set[int]()
    for number in range(1000):
        dealt.add(deal_of(board, number))
        if len(dealt) == len(board.deals):
            return (number + 1) * game.num_players
    raise AssertionError("some deals never come")


def plans() -> Iterator[Plan]:
    """Every way to choose one of the two legal actions at each of the four histories."""
    pairs = [tuple(BETTING[letters].after) for letters in DECISIONS]
    for chosen in product(*pairs):
        yield dict(zip(DECISIONS, chosen, strict=True))


def as_policy(plan: Plan) -> npt.NDArray[np.float64]:
    """The joint policy `(12, 3)` that follows a plan with every card."""
    table = np.zeros((len(INFORMATION_STATES), len(Action)))
    for row, (letters, _) in enumerate(product(DECISIONS, Card)):
        table[row, plan[letters]] = 1
    return table


def _planned(plan: Plan, observation: npt.NDArray[np.float32]) -> Action:
    """The planned action at an observation, whose bits 3..6 say which of the histories it is."""
    return plan[DECISIONS[int(observation[3:7].argmax())]]


def _spelt(plan: Plan) -> str:
    return "".join(BETTING[BETTING[at].after[move]].letters[-1] for at, move in plan.items())


def _hand(game: Game, first: int) -> str:
    number, seat = divmod(first, game.num_players)
    board = board_of(game)
    cards = game.tree.history(int(board.deals[deal_of(board, number)]))
    return f"{' against '.join(Card(card).name for card in cards)} as {AGENTS[seat]}"
