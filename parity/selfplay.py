"""The checks of the environments that learners train on, against the PettingZoo face."""

from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from algorithms.exact.simulator import Rules, rules_of
from algorithms.exact.tree import TERMINAL
from algorithms.games import Game
from algorithms.games.kuhn import kuhn
from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.rules import AGENTS, BETTING, DECISIONS, Action, Card
from parity.registry import Settings, Tally, check

GROUP = "faces"
Plan: TypeAlias = Mapping[str, Action]  # an action at each public history, whatever the card
HANDS = 24  # enough for every deal to come up


@check("tables", GROUP, "the arrays of the fast environments, node by node")
def check_tables(
    tally: Tally,
    settings: Settings,
    *,
    make_game: Callable[[], Game] = kuhn,
    make_rules: Callable[..., Rules] = rules_of,
) -> None:
    """Actor, observation, mask and returns of every node, from a walk of the AEC face."""
    tally.theirs = "the AEC face"
    game, env = make_game(), kuhn_v0.env()
    rules = make_rules(game.tree, {})
    for root in rules.deals[:, 0].tolist():
        card0, card1 = map(Card, game.tree.history(root))
        for letters in BETTING:
            node = root
            env.reset(options={"cards": (card0, card1)})
            for action in letters_to_actions(letters):
                node = rules.first_child[node] + rules.child[rules.infoset[node], action]
                env.step(action)
            _compare_node(tally, game, rules, node, env)


def _compare_node(tally: Tally, game: Game, rules: Rules, node: int, env: Any) -> None:
    where = f"after {game.tree.history(node)}"
    ended = all(env.terminations.values())
    actor = TERMINAL if ended else AGENTS.index(env.agent_selection)
    tally.same(where, "has {} to act", int(rules.player[node]), actor)
    rewards = list(map(float, env.rewards.values()))
    tally.same(where, "pays {}", rules.returns[node].tolist(), rewards)
    if not ended:
        infoset, theirs = rules.infoset[node], env.observe(AGENTS[actor])
        observation, mask = (theirs[name].tolist() for name in ("observation", "action_mask"))
        tally.same(where, "shows {}", game.observations[infoset].tolist(), observation)
        for legal in (rules.child[infoset] >= 0, game.tree.legal[infoset]):
            tally.same(where, "allows {}", legal.tolist(), list(map(bool, mask)))


@check("selfplay", GROUP, "the vectorised self-play environment against the plain one")
def check_selfplay(
    tally: Tally, settings: Settings, *, make_env: Callable[[int], SelfPlayVecEnv] = SelfPlayVecEnv
) -> None:
    """All deals under every pair of plans of the two seats, decision by decision."""
    tally.theirs = "the plain one"
    vector, plain = make_env(1), SelfPlayEnv()
    vector.per_seat_credit = plain.per_seat_credit = True
    second = [*plans()][:: 5 if settings.quick else 1]
    for seats in product(plans(), second):
        _compare_hands(vector, plain, seats, tally)


def _compare_hands(
    vector: SelfPlayVecEnv, plain: SelfPlayEnv, seats: tuple[Plan, Plan], tally: Tally
) -> None:
    vector.seed(0)
    observation, (right, _) = np.asarray(vector.reset())[0], plain.reset(seed=0)
    where = " against ".join(map(_letters, seats))
    for number in range(HANDS):
        ended, spot = False, f"{where}, hand {number}"
        while not ended:
            tally.same(spot, "shows {}", observation.tolist(), right.tolist())
            masks = vector.action_masks()[0].tolist(), plain.action_masks().tolist()
            tally.same(spot, "allows {}", *masks)
            actor = int(vector.last_step().seats[0])
            tally.same(spot, "lets {} act", actor, int(plain.last_step().seats[0]))
            action = np.int64(_planned(seats[actor], observation))
            observations, rewards, dones, _ = vector.step(np.array([action]))
            right, reward, ended, _, _ = plain.step(action)
            observation = np.asarray(observations)[0]
            tally.same(spot, "pays {}", float(rewards[0]), reward)
            tally.same(spot, "is over: {}", bool(dones[0]), ended)
            returns = (env.last_step().returns[0].tolist() for env in (vector, plain))
            tally.same(spot, "pays all {}", *returns)
        right, _ = plain.reset()


def plans() -> Iterator[Plan]:
    """Every way to choose one of the two legal actions at each of the four histories."""
    pairs = [tuple(BETTING[letters].after) for letters in DECISIONS]
    for chosen in product(*pairs):
        yield dict(zip(DECISIONS, chosen, strict=True))


def _planned(plan: Plan, observation: npt.NDArray[np.float32]) -> Action:
    """The planned action at an observation, whose indices 3..6 are a one-hot of the history."""
    return plan[DECISIONS[int(observation[3:7].argmax())]]


def _letters(plan: Plan) -> str:
    return "".join(BETTING[BETTING[at].after[move]].letters[-1] for at, move in plan.items())
