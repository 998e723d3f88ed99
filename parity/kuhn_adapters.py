"""The checks of Kuhn poker's adapters: PettingZoo, OpenSpiel, Shimmy, the page, the environments.

Each plays the game of the core in the form that another library expects.
"""

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from algorithms.compiled.simulator import PlayableTree, playable_tree
from algorithms.games import Game, kuhn
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.tree import TERMINAL
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.openspiel import SHORT_NAME
from kuhn_bridge.rules import AGENTS, BETTING, DEALS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes, one_hot
from kuhn_bridge.web.check import report
from parity import implementations
from parity.implementations import OUR_IDS, PASS_BET_IDS, REFERENCE, Implementation, node_label
from parity.kuhn_rules import states_of
from parity.registry import CheckSettings, Group, Skipped, Tally

ADAPTERS = Group("adapters")
KUHN_BRIDGE = pyspiel.load_game(SHORT_NAME)
SEEDS = 600  # whose deals are counted
HANDS = 24  # enough for every deal to come up

MakeEnv: TypeAlias = Callable[[], Any]
Plan: TypeAlias = Mapping[str, Action]
"""An action at each public history, whatever the card."""

# Every way to choose one of the two legal actions at each history.
PLANS: list[Plan] = [
    dict(zip(DECISIONS, actions, strict=True))
    for actions in product(*(BETTING[letters].after for letters in DECISIONS))
]


# ---------------------------------------------------------------------------------------------
# OpenSpiel
# ---------------------------------------------------------------------------------------------


@ADAPTERS.check("openspiel-face", "every node of python_kuhn_bridge against kuhn_poker")
def _check_openspiel(
    tally: Tally, settings: CheckSettings, *, game: pyspiel.Game = KUHN_BRIDGE
) -> None:
    ours = implementations.from_openspiel(game, OUR_IDS)
    implementations.compare(ours, REFERENCE, tally)
    implementations.compare_infosets(ours, REFERENCE, tally)
    first_texts: dict[tuple[int, int, str], str] = {}  # by seat, own card and history
    for node, state, theirs in states_of(game):
        for seat in PLAYERS:
            place = f"{node}, {AGENTS[seat]}"
            observation = state.observe(seat).tolist()
            tally.same(place, "observes {}", theirs.observation_tensor(seat), observation)
            phrase = f"has the tensor {{}} at {theirs.information_state_string(seat)!r}"
            tensor = theirs.information_state_tensor(seat)
            tally.same(place, phrase, tensor, _information_state_tensor(state, seat))
            text = theirs.observation_string(seat)
            first = first_texts.setdefault((seat, state.cards[seat], state.letters), text)
            claim = "its text is the same for each card of the other"
            tally.holds(place, claim, first == text)


def _information_state_tensor(state: State, seat: int) -> list[float]:
    """Own card `(3,)`, then a one-hot `(3,)` of each of up to three moves; zeros for the rest."""
    card = state.observe(seat)[:3]
    moves = [one_hot(action, len(Action)) for action in letters_to_actions(state.letters)]
    missing = np.zeros(len(Action) * (3 - len(moves)))
    numbers: list[float] = np.concatenate([card, *moves, missing]).tolist()
    return numbers


# ---------------------------------------------------------------------------------------------
# PettingZoo
# ---------------------------------------------------------------------------------------------


def our_aec(make_env: MakeEnv = kuhn_v0.env) -> Implementation:
    """The PettingZoo environment with chosen cards."""
    starts = {deal: deal for deal in DEALS}
    return implementations.from_aec(implementations.aec_reader(make_env()), starts, OUR_IDS)


def replayed(env: Any) -> Iterator[State]:
    """Every dealt state of the core; the AEC environment is then after the same actions."""
    for state in nodes():
        env.reset(options={"cards": state.cards})
        for action in letters_to_actions(state.letters):
            env.step(action)
        yield state


@ADAPTERS.check("pettingzoo-api", "PettingZoo's own api_test, several hands long")
def _check_pettingzoo_api(
    tally: Tally, settings: CheckSettings, *, make_env: MakeEnv = kuhn_v0.env
) -> None:
    from pettingzoo.test import api_test

    tally.theirs = "a correct environment"
    for number in range(5 if settings.quick else 20):
        failure = ""
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # it warns about dict observations
            try:
                api_test(make_env(), num_cycles=100)
            except AssertionError as error:
                failure = str(error)
        tally.same(f"api_test, run {number + 1}", "fails with {!r}", failure, "")


@ADAPTERS.check("pettingzoo", "every node of the AEC environment, and the steps of finished agents")
def _check_pettingzoo(
    tally: Tally, settings: CheckSettings, *, make_env: MakeEnv = kuhn_v0.env
) -> None:
    """Turns, masks and rewards as `last()` gives them to each agent."""
    implementations.compare(our_aec(make_env), REFERENCE, tally)


@ADAPTERS.check(
    "pettingzoo-observations", "observations, masks and infos of both agents, every node"
)
def _check_pettingzoo_observations(
    tally: Tally, settings: CheckSettings, *, make_env: MakeEnv = kuhn_v0.env
) -> None:
    """Also that illegal actions change nothing and that all deals are equally likely."""
    tally.theirs = "the core"
    env = make_env()
    for state in replayed(env):
        _compare_with_core(env, state, tally)
    times_dealt: Counter[tuple[float, ...]] = Counter()
    for seed in range(SEEDS):
        env.reset(seed=seed)
        both_cards = env.state()[:6]  # one-hot vectors
        times_dealt[tuple(both_cards.tolist())] += 1
    for count in times_dealt.values():
        claim = f"a deal comes up about 100 times, not {count}"
        tally.holds(f"{SEEDS} seeds", claim, 50 < count < 150)
    tally.same(f"{SEEDS} seeds", "deals {} pairs of cards", len(times_dealt), len(DEALS))


def _compare_with_core(env: Any, state: State, tally: Tally) -> None:
    """Compare everything that an AEC environment shows with the state of the core."""
    place = node_label(state.cards, state.letters)
    for action in Action:
        if action not in state.legal_actions:
            tally.holds(place, f"{action.name} is refused", _is_refused(env, action))
    of_both = [state.observe(0)[:3], state.observe(1)[:3], state.observe(0)[3:]]
    tally.same(place, "has state {}", env.state().tolist(), np.concatenate(of_both).tolist())
    for seat, agent in enumerate(AGENTS):
        mask = state.mask(seat).tolist()
        observation = {"observation": state.observe(seat).tolist(), "action_mask": mask}
        observed = _as_lists(env.observe(agent))
        tally.same(f"{place}, {agent}", "observes {}", observed, observation)
        info = _as_lists(env.infos[agent])
        tally.same(f"{place}, {agent}", "has info {}", info, {"action_mask": mask})


def _is_refused(env: Any, action: Action) -> bool:
    """Whether an action raises our error and changes nothing."""
    before = (env.state().tolist(), dict(env.rewards), env.agent_selection)
    try:
        env.step(action)
    except BridgeError:
        after = (env.state().tolist(), dict(env.rewards), env.agent_selection)
        return after == before
    return False


def _as_lists(arrays: Mapping[str, Any]) -> dict[str, list[float]]:
    return {key: value.tolist() for key, value in arrays.items()}


# ---------------------------------------------------------------------------------------------
# Shimmy
# ---------------------------------------------------------------------------------------------


def corrected_shimmy() -> Any:
    """Shimmy's wrapper of `kuhn_poker` with our corrections."""
    from kuhn_bridge.shimmy import WholeHands

    return WholeHands(game_name="kuhn_poker")


def upstream_shimmy() -> Any:
    """Shimmy's wrapper of `kuhn_poker` as it is."""
    from shimmy import OpenSpielCompatibilityV0

    return OpenSpielCompatibilityV0(game_name="kuhn_poker")


def shimmy_aec(env: Any) -> Implementation:
    """A Shimmy wrapper of `kuhn_poker`, with a seed for each deal."""
    seeds = {}
    for seed in range(200):
        env.reset(seed=seed)
        deal = tuple(env.game_state.history())
        seeds[deal] = seed
    return implementations.from_aec(implementations.aec_reader(env), seeds, PASS_BET_IDS)


@ADAPTERS.check("shimmy", "every node of Shimmy with our shim against the AEC environment")
def _check_shimmy(
    tally: Tally, settings: CheckSettings, *, make_env: MakeEnv = corrected_shimmy
) -> None:
    tally.theirs = "Shimmy"
    implementations.compare(our_aec(), shimmy_aec(make_env()), tally)


@ADAPTERS.check("shimmy-upstream", "Shimmy without our shim, to see whether its fault is fixed")
def _check_shimmy_upstream(
    tally: Tally, settings: CheckSettings, *, make_env: MakeEnv = upstream_shimmy
) -> None:
    """A mismatch here is a fault of Shimmy, not ours."""
    of_shimmy = Tally(ours="Shimmy")
    implementations.compare(shimmy_aec(make_env()), REFERENCE, of_shimmy)
    tally.compared = of_shimmy.compared
    tally.status = "known"
    if of_shimmy.wrong:
        tally.note = of_shimmy.cases[0]
    else:
        tally.note = "fixed upstream: kuhn_bridge.shimmy can be removed"


# ---------------------------------------------------------------------------------------------
# The page and the environments for training
# ---------------------------------------------------------------------------------------------


@ADAPTERS.check("engine.js", "the browser's rules engine at all 58 nodes, under node")
def _check_engine(tally: Tally, settings: CheckSettings, *, vectors: str | None = None) -> None:
    """`vectors` is the JSON of all nodes that the engine is compared with."""
    tally.ours = "engine.js"
    tally.theirs = "the core"
    try:
        answer = report(vectors)
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    mismatches = answer["mismatches"]
    tally.compared += answer["compared"] - len(mismatches)
    for mismatch in mismatches:
        place = f"{mismatch['letters'] or 'the deal'} with cards {mismatch['cards']}"
        phrase = f"has {mismatch['field']} {{}}"
        tally.same(place, phrase, str(mismatch["engine"]), str(mismatch["core"]))


@ADAPTERS.check("tables", "the arrays of the fast environments, node by node")
def _check_tables(
    tally: Tally,
    settings: CheckSettings,
    *,
    make_game: Callable[[], Game] = kuhn,
    make_playable_tree: Callable[..., PlayableTree] = playable_tree,
) -> None:
    """Actor, observation, mask and returns of every node, from a walk of the AEC environment."""
    tally.theirs = "the AEC environment"
    game = make_game()
    playable = make_playable_tree(game.tree, {})
    roots = {tuple(game.tree.history(root)): root for root in playable.deals[:, 0].tolist()}
    env = kuhn_v0.env()
    for state in replayed(env):
        node = roots[state.cards]
        for action in letters_to_actions(state.letters):
            infoset = playable.infoset[node]
            node = playable.first_child[node] + playable.child[infoset, action]
        place = f"after {game.tree.history(node)}"
        is_over = all(env.terminations.values())
        actor = TERMINAL if is_over else AGENTS.index(env.agent_selection)
        tally.same(place, "has {} to act", int(playable.player[node]), actor)
        rewards = [float(reward) for reward in env.rewards.values()]
        tally.same(place, "pays {}", playable.returns[node].tolist(), rewards)
        if is_over:
            continue
        infoset = playable.infoset[node]
        shown = env.observe(AGENTS[actor])
        observation = shown["observation"].tolist()
        tally.same(place, "shows {}", game.observations[infoset].tolist(), observation)
        allowed = shown["action_mask"].astype(bool).tolist()
        tally.same(place, "allows {}", (playable.child[infoset] >= 0).tolist(), allowed)
        tally.same(place, "allows {}", game.tree.legal[infoset].tolist(), allowed)


@ADAPTERS.check("selfplay", "the vectorised self-play environment against the plain one")
def _check_selfplay(
    tally: Tally, settings: CheckSettings, *, make_env: Callable[..., Any] = SelfPlayVecEnv
) -> None:
    """All deals under every pair of plans of the two seats, decision by decision."""
    tally.theirs = "the plain one"
    vector = make_env(1, guarded=False)
    plain = SelfPlayEnv(guarded=False)
    step = 5 if settings.quick else 1
    for plans in product(PLANS, PLANS[::step]):
        _compare_hands(vector, plain, plans, tally)


def _compare_hands(vector: Any, plain: Any, plans: tuple[Plan, ...], tally: Tally) -> None:
    """Play `HANDS` hands by the plans of the two seats in both environments."""
    matchup = " against ".join(_plan_letters(plan) for plan in plans)
    vector.seed(0)
    observation = np.asarray(vector.reset())[0]
    expected, _ = plain.reset(seed=0)
    for number in range(HANDS):
        place = f"{matchup}, hand {number}"
        ended = False
        while not ended:
            tally.same(place, "shows {}", observation.tolist(), expected.tolist())
            masks = vector.action_masks()
            tally.same(place, "allows {}", masks[0].tolist(), plain.action_masks().tolist())
            actor = int(vector.last_step().seats[0])
            tally.same(place, "lets {} act", actor, int(plain.last_step().seats[0]))
            history = DECISIONS[int(observation[3:7].argmax())]  # a one-hot vector
            action = np.int64(plans[actor][history])
            observations, rewards, dones, _ = vector.step(np.array([action]))
            observation = np.asarray(observations)[0]
            expected, reward, ended, _, _ = plain.step(action)
            tally.same(place, "pays {}", float(rewards[0]), reward)
            tally.same(place, "is over: {}", bool(dones[0]), ended)
            returns = vector.last_step().returns[0].tolist()
            tally.same(place, "pays all {}", returns, plain.last_step().returns[0].tolist())
        expected, _ = plain.reset()


def _plan_letters(plan: Plan) -> str:
    """The letter of each action of a plan, e.g. `pbbp`."""
    letters = [BETTING[history].after[action][-1] for history, action in plan.items()]
    return "".join(letters)
