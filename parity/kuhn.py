"""The checks of Kuhn poker at every node: the rules, and the faces of the game."""

import contextlib
import io
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import product
from typing import Any, TypeAlias

import numpy as np
import pyspiel

from algorithms.compiled.simulator import rules_of
from algorithms.games import kuhn
from algorithms.games.openspiel import load_pyspiel
from algorithms.self_play.environments import SelfPlayEnv, SelfPlayVecEnv
from algorithms.tree import TERMINAL
from kuhn_bridge import bridge, kuhn_v0
from kuhn_bridge.bridge import BET, LETTERS, KuhnPoker, from_openspiel, letters_to_actions
from kuhn_bridge.errors import BridgeError
from kuhn_bridge.openspiel import SHORT_NAME
from kuhn_bridge.rules import AGENTS, BETTING, DEALS, DECISIONS, PLAYERS, Action
from kuhn_bridge.state import State, nodes, one_hot
from kuhn_bridge.web.check import report
from parity import sides
from parity.registry import Settings, Skipped, Subject, Tally, check
from parity.sides import CORE, REFERENCE, Side, hand

RULES, FACES = "rules", "faces"
KUHN_POKER, KUHN_BRIDGE = map(pyspiel.load_game, ("kuhn_poker", SHORT_NAME))
PYTHON_REFERENCE = sides.openspiel(load_pyspiel("python_kuhn_poker"))
HANDS = 24  # enough for every deal to come up
Plan: TypeAlias = Mapping[str, Action]  # an action at each public history, whatever the card
PLANS: list[Plan] = [  # every way to choose one of the two legal actions
    dict(zip(DECISIONS, chosen, strict=True))
    for chosen in product(*(BETTING[letters].after for letters in DECISIONS))
]


def lockstep(
    states: Subject = nodes, game: pyspiel.Game = KUHN_POKER
) -> Iterator[tuple[str, State, pyspiel.State]]:
    """Every dealt state of the core, with OpenSpiel's state after the same moves."""
    for state in states():
        theirs, own = game.new_initial_state(), letters_to_actions(state.letters)
        moves = map(LETTERS.index, state.letters) if game is KUHN_POKER else own
        for action in (*state.cards, *moves):
            theirs.apply_action(action)
        yield hand(state.cards, state.letters), state, theirs


def facing_bet(theirs: pyspiel.State) -> bool:
    """Whether OpenSpiel's player to act faces a bet: the last move was one."""
    return bool(theirs.history()[2:][-1:] == [BET])


@check("core", RULES, "every node of the core against kuhn_poker in C++")
def _check_core(tally: Tally, settings: Settings, *, core: Side = CORE) -> None:
    sides.compare(core, REFERENCE, tally)


@check("core-python", RULES, "every node of the core against python_kuhn_poker")
def _check_core_python(tally: Tally, settings: Settings, *, core: Side = CORE) -> None:
    sides.compare(core, PYTHON_REFERENCE, tally)


@check("phases", RULES, "the phase of every node, derived from OpenSpiel's history")
def _check_phases(tally: Tally, settings: Settings, *, states: Subject = nodes) -> None:
    for where, state, theirs in lockstep(states):
        word = "response" if facing_bet(theirs) else "act"
        right = "terminal" if theirs.is_terminal() else f"p{theirs.current_player()}_{word}"
        tally.same(where, "is in phase {}", state.phase.label, right)


@check("information", RULES, "which nodes share an information state, pair by pair")
def _check_information(tally: Tally, settings: Settings, *, core: Side = CORE) -> None:
    for theirs in (REFERENCE, PYTHON_REFERENCE):
        sides.compare_infosets(core, theirs, tally)


@check("bridge", RULES, "every action converted to OpenSpiel's and back, legal or not")
def _check_bridge(tally: Tally, settings: Settings, *, bridge: Any = bridge) -> None:
    """Our action and its image lead to the same node, and the image converts back."""
    for where, state, theirs in lockstep():
        if theirs.is_terminal():
            continue
        faces, images = facing_bet(theirs), []
        for action in Action:
            legal = action in state.legal_actions
            try:
                images.append(image := bridge.to_openspiel(action, faces))
            except BridgeError:
                tally.holds(where, f"{action.name} is illegal", not legal)
                continue
            after = state.act(action).letters if legal else "an error"
            right = "".join(LETTERS[move] for move in theirs.child(image).history()[2:])
            tally.same(where, f"has {{}} after {action.name}", after, right)
            back = bridge.from_openspiel(image, faces)
            tally.same(where, "converts back to {}", back.name, action.name)
        tally.same(where, "allows {}", sorted(images), theirs.legal_actions())


@check("rulebook", RULES, "the rulebook in letters over all deals and histories")
def _check_rulebook(tally: Tally, settings: Settings, *, make_book: Subject = KuhnPoker) -> None:
    sides.compare(sides.rulebook(make_book()), REFERENCE, tally)


@check("observations", RULES, "every observation, decoded; none depends on the other card")
def _check_observations(tally: Tally, settings: Settings, *, states: Subject = nodes) -> None:
    """An observation encodes own card, history and actor, and nothing else."""
    seen: dict[tuple[int, int, str], bytes] = {}
    infosets: dict[bytes, str] = {}
    for where, state, theirs in lockstep(states):
        for seat in PLAYERS:
            observation, spot = state.observe(seat), f"{where}, {AGENTS[seat]}"
            card, over = theirs.history()[seat], theirs.is_terminal()
            slot = len(DECISIONS) if over else DECISIONS.index(state.letters)
            actor = None if over else theirs.current_player()
            parts = np.split(observation, [3, 8])
            for part, value, size in zip(parts, (card, slot, actor), (3, 5, 2), strict=True):
                right = [float(i == value) for i in range(size)]
                tally.same(spot, "observes {}", part.tolist(), right)
            key = observation.tobytes()
            same = seen.setdefault((seat, card, state.letters), key) == key
            tally.holds(spot, "the observation is the same for each card of the other", same)
            if actor == seat:
                name = theirs.information_state_string(seat)
                tally.same(spot, "is in {}", infosets.setdefault(key, name), name)


@check("masks", RULES, "every mask of both agents against OpenSpiel's legal actions")
def _check_masks(tally: Tally, settings: Settings, *, states: Subject = nodes) -> None:
    """A mask allows what OpenSpiel allows, and nothing to an agent that is not to act."""
    for where, state, theirs in lockstep(states):
        legal = [] if theirs.is_terminal() else theirs.legal_actions()
        ours = {from_openspiel(action, facing_bet(theirs)) for action in legal}
        for seat, agent in enumerate(AGENTS):
            acts = theirs.current_player() == seat
            right = [int(acts and action in ours) for action in Action]
            tally.same(f"{where}, {agent}", "masks {}", state.mask(seat).tolist(), right)


def our_aec(make_env: Subject = kuhn_v0.env) -> Side:
    """The PettingZoo face with fixed deals."""
    return sides.aec(sides.aec_reader(make_env()), {deal: deal for deal in DEALS}, sides.OURS)


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


def upstream() -> Any:
    """Shimmy's wrapper of `kuhn_poker` without our shim."""
    from shimmy import OpenSpielCompatibilityV0

    return OpenSpielCompatibilityV0(game_name="kuhn_poker")


def replayed(env: Any) -> Iterator[tuple[str, State, Any]]:
    """Every dealt state of the core, with an AEC environment after the same actions."""
    for state in nodes():
        env.reset(options={"cards": state.cards})
        for action in letters_to_actions(state.letters):
            env.step(action)
        yield hand(state.cards, state.letters), state, env


@check("openspiel-face", FACES, "every node of python_kuhn_bridge against kuhn_poker")
def _check_openspiel_face(
    tally: Tally, settings: Settings, *, game: pyspiel.Game = KUHN_BRIDGE
) -> None:
    ours = sides.openspiel(game, sides.OURS)
    sides.compare(ours, REFERENCE, tally)
    sides.compare_infosets(ours, REFERENCE, tally)
    texts: dict[tuple[int, int, str], str] = {}
    for node, state, theirs in lockstep(game=game):
        for seat in PLAYERS:
            where = f"{node}, {AGENTS[seat]}"
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


@check("pettingzoo-api", FACES, "PettingZoo's own api_test, several hands long")
def _check_pettingzoo_api(
    tally: Tally, settings: Settings, *, make_env: Subject = kuhn_v0.env
) -> None:
    from pettingzoo.test import api_test

    tally.theirs = "a correct environment"
    for number in range(5 if settings.quick else 20):
        fault = ""
        with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
            warnings.simplefilter("ignore")  # it warns about dict observations
            try:
                api_test(make_env(), num_cycles=100)
            except AssertionError as error:
                fault = str(error)
        tally.same(f"api_test, run {number + 1}", "fails with {!r}", fault, "")


@check("pettingzoo", FACES, "every node of the AEC face, and the steps of finished agents")
def _check_pettingzoo(tally: Tally, settings: Settings, *, make_env: Subject = kuhn_v0.env) -> None:
    """Turns, masks and rewards as `last()` gives them to each agent."""
    sides.compare(our_aec(make_env), REFERENCE, tally)


@check("pettingzoo-observations", FACES, "observations, masks and infos of both agents, every node")
def _check_pettingzoo_observations(
    tally: Tally, settings: Settings, *, make_env: Subject = kuhn_v0.env
) -> None:
    """Also that illegal actions change nothing and that all deals are equally likely."""
    tally.theirs, env = "the core", make_env()
    for where, state, _ in replayed(env):
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


@check("shimmy", FACES, "every node of Shimmy with our shim against the AEC face")
def _check_shimmy(tally: Tally, settings: Settings, *, make_env: Subject = shimmed) -> None:
    tally.theirs = "Shimmy"
    sides.compare(our_aec(), shimmy_aec(make_env()), tally)


@check("shimmy-upstream", FACES, "Shimmy without our shim, to see whether its fault is fixed")
def _check_shimmy_upstream(
    tally: Tally, settings: Settings, *, make_env: Subject = upstream
) -> None:
    """A mismatch here is a fault of Shimmy, not ours."""
    found = Tally(ours="Shimmy")
    sides.compare(shimmy_aec(make_env()), REFERENCE, found)
    fixed = "fixed upstream: kuhn_bridge.shimmy can be removed"
    tally.compared, tally.status = found.compared, "known"
    tally.note = found.cases[0] if found.wrong else fixed


@check("engine.js", FACES, "the browser's rules engine at all 58 nodes, under node")
def _check_engine(tally: Tally, settings: Settings, *, vectors: str | None = None) -> None:
    tally.ours, tally.theirs = "engine.js", "the core"
    try:
        found = report(vectors)
    except BridgeError as reason:
        raise Skipped(str(reason)) from None
    tally.compared += found["compared"] - len(found["mismatches"])
    for miss in found["mismatches"]:
        where = f"{miss['letters'] or 'the deal'} with cards {miss['cards']}"
        tally.same(where, f"has {miss['field']} {{}}", str(miss["engine"]), str(miss["core"]))


@check("tables", FACES, "the arrays of the fast environments, node by node")
def _check_tables(
    tally: Tally, settings: Settings, *, make_game: Subject = kuhn, make_rules: Subject = rules_of
) -> None:
    """Actor, observation, mask and returns of every node, from a walk of the AEC face."""
    tally.theirs, game = "the AEC face", make_game()
    rules = make_rules(game.tree, {})
    roots = {tuple(game.tree.history(root)): root for root in rules.deals[:, 0].tolist()}
    for _, state, env in replayed(kuhn_v0.env()):
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


@check("selfplay", FACES, "the vectorised self-play environment against the plain one")
def _check_selfplay(
    tally: Tally, settings: Settings, *, make_env: Subject = SelfPlayVecEnv
) -> None:
    """All deals under every pair of plans of the two seats, decision by decision."""
    tally.theirs = "the plain one"
    vector = make_env(1, guarded=False)
    plain = SelfPlayEnv(guarded=False)
    for seats in product(PLANS, PLANS[:: 5 if settings.quick else 1]):
        _compare_hands(vector, plain, seats, tally)


def _compare_hands(vector: Any, plain: Any, seats: tuple[Plan, ...], tally: Tally) -> None:
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
