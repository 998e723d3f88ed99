"""The checks of the faces: OpenSpiel, PettingZoo, Shimmy, the page, and training environments."""

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from algorithms.exact.simulator import rules_of
from algorithms.exact.tree import TERMINAL
from algorithms.games import kuhn
from algorithms.learning.environments import SelfPlayEnv, SelfPlayVecEnv
from kuhn_bridge import kuhn_v0
from kuhn_bridge.bridge import letters_to_actions
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.openspiel import SHORT_NAME
from kuhn_bridge.rules import AGENTS, BETTING, DEALS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes, one_hot
from kuhn_bridge.web.check import report
from parity import sides
from parity.registry import Settings, Skipped, Tally, check
from parity.sides import REFERENCE, Side, compare, hand

GROUP = "faces"
HANDS = 24  # enough for every deal to come up
Plan: TypeAlias = Mapping[str, Action]  # an action at each public history, whatever the card


def our_aec() -> Side:
    """The PettingZoo face with fixed deals."""
    return sides.aec(sides.aec_reader(kuhn_v0.env()), {deal: deal for deal in DEALS}, sides.OURS)


def shimmy_aec(env: Any) -> Side:
    """A Shimmy wrapper of `kuhn_poker`, with a seed for each deal."""
    seeds = {}
    for seed in range(200):
        env.reset(seed=seed)
        seeds[tuple(env.game_state.history())] = seed
    return sides.aec(sides.aec_reader(env), seeds, sides.PASS_BET)


def shimmed() -> Any:
    """Shimmy's wrapper of `kuhn_poker` with our shim."""
    from kuhn_bridge.shimmy import WholeHands

    return WholeHands(game_name="kuhn_poker")


def replayed() -> Iterator[tuple[str, State, Any]]:
    """Every dealt state of the core, with the AEC face after the same actions."""
    env = kuhn_v0.env()
    for state in nodes():
        env.reset(options={"cards": state.cards})
        for action in letters_to_actions(state.letters):
            env.step(action)
        yield hand(state.cards, state.letters), state, env


@check("openspiel-face", GROUP, "every node of python_kuhn_bridge against kuhn_poker")
def _check_openspiel_face(tally: Tally, settings: Settings) -> None:
    """The registered game, its information states and its tensors."""
    game = pyspiel.load_game(SHORT_NAME)
    ours = sides.openspiel(game, sides.OURS)
    compare(ours, REFERENCE, tally)
    sides.compare_infosets(ours, REFERENCE, tally)
    texts: dict[tuple[int, int, str], str] = {}
    for state in nodes():
        theirs = game.new_initial_state()
        for action in (*state.cards, *letters_to_actions(state.letters)):
            theirs.apply_action(action)
        for seat in PLAYERS:
            where = f"{hand(state.cards, state.letters)}, {AGENTS[seat]}"
            tensor = theirs.observation_tensor(seat)
            tally.same(where, "observes {}", tensor, state.observe(seat).tolist())
            phrase = f"has the tensor {{}} at {theirs.information_state_string(seat)!r}"
            # own card, then a one-hot of each of up to three moves
            moves = [one_hot(move, len(Action)) for move in letters_to_actions(state.letters)]
            right = np.concatenate([state.observe(seat)[:3], *moves, np.zeros(9)])[:12].tolist()
            tally.same(where, phrase, theirs.information_state_tensor(seat), right)
            text = theirs.observation_string(seat)
            same = texts.setdefault((seat, state.cards[seat], state.letters), text) == text
            tally.holds(where, "its text is the same for each card of the other", same)


@check("pettingzoo-api", GROUP, "PettingZoo's own api_test, several hands long")
def _check_pettingzoo_api(tally: Tally, settings: Settings) -> None:
    from pettingzoo.test import api_test

    tally.theirs = "a correct environment"
    for number in range(5 if settings.quick else 20):
        fault = ""
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # it warns about dict observations
            try:
                api_test(kuhn_v0.env(), num_cycles=100)
            except AssertionError as error:
                fault = str(error)
        tally.same(f"api_test, run {number + 1}", "fails with {!r}", fault, "")


@check("pettingzoo", GROUP, "every node of the AEC face, and the steps of finished agents")
def _check_pettingzoo(tally: Tally, settings: Settings) -> None:
    """Turns, masks and rewards as `last()` gives them to each agent."""
    compare(our_aec(), REFERENCE, tally)


@check("pettingzoo-observations", GROUP, "observations, masks and infos of both agents, every node")
def _check_pettingzoo_observations(tally: Tally, settings: Settings) -> None:
    """Also that illegal actions change nothing and that all deals are equally likely."""
    tally.theirs = "the core"
    for where, state, env in replayed():
        whole = np.concatenate([state.observe(0)[:3], state.observe(1)[:3], state.observe(0)[3:]])
        for illegal in set(Action) - set(state.legal_actions):
            tally.holds(where, f"{illegal.name} is refused", _is_refused(env, illegal))
        tally.same(where, "has state {}", env.state().tolist(), whole.tolist())
        for seat, agent in enumerate(AGENTS):
            spot, mask = f"{where}, {agent}", state.mask(seat).tolist()
            right = {"observation": state.observe(seat).tolist(), "action_mask": mask}
            tally.same(spot, "observes {}", _as_lists(env.observe(agent)), right)
            tally.same(spot, "has info {}", _as_lists(env.infos[agent]), {"action_mask": mask})
    deals: Counter[tuple[float, ...]] = Counter()
    env = kuhn_v0.env()
    for seed in range(600):
        env.reset(seed=seed)
        deals[*env.state()[:6].tolist()] += 1
    for count in deals.values():
        tally.holds("600 seeds", f"a deal comes up about 100 times, not {count}", 50 < count < 150)
    tally.same("600 seeds", "deals {} pairs of cards", len(deals), len(DEALS))


def _is_refused(env: Any, action: Action) -> bool:
    """Whether an action raises our error and changes nothing."""
    before = env.state().tolist(), dict(env.rewards), env.agent_selection
    try:
        env.step(action)
    except BridgeError:
        return (env.state().tolist(), dict(env.rewards), env.agent_selection) == before
    return False


def _as_lists(arrays: Mapping[str, Any]) -> dict[str, list[float]]:
    return {key: value.tolist() for key, value in arrays.items()}


@check("shimmy", GROUP, "every node of Shimmy with our shim against the AEC face")
def _check_shimmy(tally: Tally, settings: Settings) -> None:
    tally.theirs = "Shimmy"
    compare(our_aec(), shimmy_aec(shimmed()), tally)


@check("shimmy-upstream", GROUP, "Shimmy without our shim, to see whether its fault is fixed")
def _check_shimmy_upstream(tally: Tally, settings: Settings) -> None:
    """A mismatch here is a fault of Shimmy, not ours."""
    import shimmy

    found = Tally(ours="Shimmy")
    env = shimmy.OpenSpielCompatibilityV0(game_name="kuhn_poker")
    compare(shimmy_aec(env), REFERENCE, found)
    fixed = "fixed upstream: kuhn_bridge.shimmy can be removed"
    tally.compared, tally.status = found.compared, "known"
    tally.note = found.cases[0] if found.wrong else fixed


@check("engine.js", GROUP, "the browser's rules engine at all 58 nodes, under node")
def _check_engine(tally: Tally, settings: Settings) -> None:
    """Phases, moves, returns, observations and masks of both agents."""
    tally.ours, tally.theirs = "engine.js", "the core"
    try:
        found = report()
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    tally.compared += found["compared"] - len(found["mismatches"])
    for miss in found["mismatches"]:
        where = f"{miss['letters'] or 'the deal'} with cards {miss['cards']}"
        tally.same(where, f"has {miss['field']} {{}}", str(miss["engine"]), str(miss["core"]))


@check("tables", GROUP, "the arrays of the fast environments, node by node")
def _check_tables(tally: Tally, settings: Settings) -> None:
    """Actor, observation, mask and returns of every node, from a walk of the AEC face."""
    tally.theirs, game = "the AEC face", kuhn()
    rules = rules_of(game.tree, {})
    roots = {tuple(game.tree.history(root)): root for root in rules.deals[:, 0].tolist()}
    for _, state, env in replayed():
        node = roots[state.cards]
        for action in letters_to_actions(state.letters):
            node = rules.first_child[node] + rules.child[rules.infoset[node], action]
        where, ended = f"after {game.tree.history(node)}", all(env.terminations.values())
        actor = TERMINAL if ended else AGENTS.index(env.agent_selection)
        tally.same(where, "has {} to act", int(rules.player[node]), actor)
        rewards = list(map(float, env.rewards.values()))
        tally.same(where, "pays {}", rules.returns[node].tolist(), rewards)
        if not ended:
            infoset, theirs = rules.infoset[node], _as_lists(env.observe(AGENTS[actor]))
            ours = game.observations[infoset].tolist()
            tally.same(where, "shows {}", ours, theirs["observation"])
            for legal in (rules.child[infoset] >= 0, game.tree.legal[infoset]):
                allowed = list(map(bool, theirs["action_mask"]))
                tally.same(where, "allows {}", legal.tolist(), allowed)


@check("selfplay", GROUP, "the vectorised self-play environment against the plain one")
def _check_selfplay(tally: Tally, settings: Settings) -> None:
    """All deals under every pair of plans of the two seats, decision by decision."""
    tally.theirs = "the plain one"
    vector, plain = SelfPlayVecEnv(1), SelfPlayEnv()
    vector.per_seat_credit = plain.per_seat_credit = True
    second = [*plans()][:: 5 if settings.quick else 1]
    for seats in product(plans(), second):
        _compare_hands(vector, plain, seats, tally)


def _compare_hands(
    vector: SelfPlayVecEnv, plain: SelfPlayEnv, seats: tuple[Plan, Plan], tally: Tally
) -> None:
    vector.seed(0)
    observation, (right, _) = np.asarray(vector.reset())[0], plain.reset(seed=0)
    where = " against ".join(
        "".join(BETTING[BETTING[at].after[move]].letters[-1] for at, move in plan.items())
        for plan in seats
    )
    for number in range(HANDS):
        ended, spot = False, f"{where}, hand {number}"
        while not ended:
            tally.same(spot, "shows {}", observation.tolist(), right.tolist())
            masks = vector.action_masks()[0].tolist(), plain.action_masks().tolist()
            tally.same(spot, "allows {}", *masks)
            actor = int(vector.last_step().seats[0])
            tally.same(spot, "lets {} act", actor, int(plain.last_step().seats[0]))
            history = DECISIONS[int(observation[3:7].argmax())]  # a one-hot
            action = np.int64(seats[actor][history])
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
    for chosen in product(*(BETTING[letters].after for letters in DECISIONS)):
        yield dict(zip(DECISIONS, chosen, strict=True))
