"""The checks of every node of Kuhn poker fail on planted errors."""

import shutil
from contextlib import suppress
from dataclasses import replace
from functools import partial
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest

from algorithms.compiled.simulator import playable_tree
from algorithms.games import kuhn
from algorithms.self_play.environments import SelfPlayVecEnv
from kuhn_bridge import Action, BridgeError, bridge
from kuhn_bridge.kuhn_v0 import KuhnEnv
from kuhn_bridge.openspiel import KuhnBridgeGame, KuhnBridgeObserver, KuhnBridgeState
from kuhn_bridge.rules import BETTING, DEALS
from kuhn_bridge.shimmy import WholeHands
from kuhn_bridge.state import nodes
from kuhn_bridge.web.check import to_json
from parity.implementations import CORE, Implementation
from parity.kuhn_adapters import corrected_shimmy
from parity.registry import run
from tests.candidates import Tutorial
from tests.games import altered
from tests.planted_errors import KUHN_CHECKS, QUICK, failures

# The rules.


def core(**changes):
    """The core with other views: `returns=lambda deal, letters, view: ...`."""

    def wrong_view(deal, letters):
        view = CORE.view(deal, letters)
        wrong = {name: change(deal, letters, view) for name, change in changes.items()}
        return replace(view, **wrong)

    return {"core": replace(CORE, view=wrong_view)}


def dealing(jack):
    """The core with another probability that the first card is a jack."""
    chance = CORE.chance()
    wrong = chance | {(): chance[()] | {0: jack}}
    return {"core": Implementation(CORE.view, lambda: wrong)}


def states(**changes):
    """All states of the core with other attributes: `phase=lambda state: ...`."""

    def changed(state):
        public = [name for name in dir(state) if not name.startswith("_")]
        attributes = {name: getattr(state, name) for name in public}
        wrong = {name: change(state) for name, change in changes.items()}
        return SimpleNamespace(**(attributes | wrong))

    return {"states": lambda: [changed(state) for state in nodes()]}


def observing(observe):
    return states(observe=lambda state: partial(observe, state))


def masking(mask):
    return states(mask=lambda state: partial(mask, state))


def always(value):
    return lambda *args: value


def refusing_bets(action, faces):
    if action is Action.BET:
        raise BridgeError("refused")
    return bridge.to_openspiel(action, faces)


def swapped(action, faces):
    """Call and fold change places."""
    return 1 - bridge.to_openspiel(action, faces) if faces else bridge.to_openspiel(action, faces)


def peeking(state, seat):
    observation = state.observe(seat)
    observation[state.cards[1 - seat]] = 1
    return observation


def blurred(state, seat):
    """Jack and queen have the same observation."""
    observation = state.observe(seat)
    observation[:2] = observation[:2].sum() / 2
    return observation


def everything_legal(state, seat):
    return np.ones(3, np.int8) if not state.letters and seat == 0 else state.mask(seat)


# The adapters.


def our_game(**methods):
    """Our OpenSpiel game with other methods of its states or of its observer."""
    bases = KuhnBridgeState, KuhnBridgeObserver
    state, observer = (type("Other", (base,), methods) for base in bases)

    class Game(KuhnBridgeGame):
        def new_initial_state(self):
            return state(self)

        def make_py_observer(self, *options):
            return observer(*options)

    return {"game": Game()}


def blank(self, state, player):
    self.tensor[:] = 0


def both_cards(self, state, player):
    return str(state)


def loaded(self):
    first, *others = KuhnBridgeState.chance_outcomes(self)
    share = 1 / (len(others) + 2)
    return [(first[0], 2 * share), *((card, share) for card, _ in others)]


def env(**methods):
    """Our PettingZoo environment with other methods."""
    return {"make_env": type("OtherEnv", (KuhnEnv,), methods)}


def all_legal(self, agent):
    return {**KuhnEnv.observe(self, agent), "action_mask": np.ones(3, np.int8)}


def info_allows_all(self, hand):
    KuhnEnv._turn(self, hand)
    for info in self.infos.values():
        info["action_mask"][:] = 1


def lenient(self, action):
    with suppress(BridgeError):
        KuhnEnv.step(self, action)


def changed_by_an_error(self, action):
    try:
        KuhnEnv.step(self, action)
    except BridgeError:
        self.rewards["player_0"] = 1
        raise


def dealt_by(deal_of):
    def reset(self, seed=None, options=None):
        KuhnEnv.reset(self, seed=seed, options=options or {"cards": deal_of(seed)})

    return reset


def narrow_space(self, agent):
    box = gymnasium.spaces.Box(0, 0.5, (10,), np.float32)
    return gymnasium.spaces.Dict(
        {**KuhnEnv.observation_space(self, agent).spaces, "observation": box}
    )


def pays_twice():
    """Shimmy with our shim, but rewards are not cleared after each step."""
    other = type("PaysTwice", (WholeHands,), {"_clear_rewards": always(None)})
    return other(game_name="kuhn_poker")


def other_vectors():
    return {"vectors": to_json().replace('"returns": [2, -2]', '"returns": [3, -3]')}


def replaced(name, change):
    """Change one field of a named tuple."""
    return lambda fields: fields._replace(**{name: change(getattr(fields, name))})


def rules(name, change):
    """The simulator's arrays with one of them changed."""
    return {"make_playable_tree": lambda *args: replaced(name, change)(playable_tree(*args))}


def game(**changes):
    """Kuhn with other arrays in its tree, and its observations reversed."""
    right = kuhn()
    arrays = {name: change(getattr(right.tree, name)) for name, change in changes.items()}
    tree = replace(right.tree, **arrays)
    wrong = altered(right, tree=tree, _observations=lambda self: right.observations[::-1])
    return {"make_game": lambda: wrong}


def environment(name, change):
    """The vectorised environment with another result of a method; the plain one keeps its own."""
    right = getattr(SelfPlayVecEnv, name)
    methods = {name: lambda self: change(right(self))}
    return {"make_env": type("OtherEnv", (SelfPlayVecEnv,), methods)}


def step(part, change):
    """Another part of what `step_wait` returns: observations, rewards, whether ended, infos."""
    return environment(
        "step_wait", lambda parts: (*parts[:part], change(parts[part]), *parts[part + 1 :])
    )


def last_step(name, change):
    """Another part of what `last_step` returns."""
    return environment("last_step", replaced(name, change))


PLANTED = [
    (
        "core",
        core(returns=lambda deal, letters, view: [2 * chips for chips in view.returns]),
        "pp with K against Q: ours pays 2, OpenSpiel pays 1",
    ),
    (
        "core",
        core(returns=lambda deal, letters, view: (view.returns[0], view.returns[0])),
        "ours pays both together -2, OpenSpiel pays both together 0",
    ),
    (
        "core",
        core(legal=lambda deal, letters, view: view.legal | {"fold"}),
        "the deal with J against Q: ours allows bet or check or fold",
    ),
    ("core", core(actor=always(0)), "p with J against Q: ours lets player_0"),
    ("core", dealing(3 / 7), "dealing after []: ours deals J with probability 0.428571429"),
    ("core", dealing(1 / 3 + 1e-6), "deals J with probability 0.333334333"),
    ("core-python", core(returns=always((9, -9))), "pp with J against Q: ours pays 9, OpenSpiel"),
    (
        "phases",
        states(phase=lambda state: BETTING[state.letters.replace("pb", "p")].phase),
        "pb with J against Q: ours is in phase p1_act",
    ),
    (
        "information",
        core(information_state=lambda deal, letters, view: f"{deal[view.actor] // 2}{letters}"),
        "ours has the same information state at both: True",
    ),
    (
        "information",
        core(information_state=lambda deal, letters, view: (deal, letters)),
        "ours has the same information state at both: False",
    ),
    ("bridge", {"from_openspiel": always(Action.FOLD)}, "ours converts back to FOLD"),
    ("bridge", {"to_openspiel": refusing_bets}, "BET is illegal does not hold"),
    ("bridge", {"to_openspiel": refusing_bets}, "ours allows [0]"),
    ("bridge", {"to_openspiel": swapped}, "has bp after CHECK_OR_CALL"),
    ("rulebook", {"make_book": Tutorial}, "pp with K against Q: ours pays 2, OpenSpiel pays 1"),
    ("observations", observing(peeking), "is the same for each card of the other does not hold"),
    ("observations", observing(blurred), "ours observes [0.5, 0.5, 0.0]"),
    ("observations", observing(blurred), "ours is in 0, OpenSpiel is in 1"),
    ("masks", masking(everything_legal), "with J against Q, player_0: ours masks [1, 1, 1]"),
    (
        "masks",
        masking(lambda state, seat: state.mask(state.actor or 0)),
        "the deal with J against Q, player_1: ours masks [1, 1, 0]",
    ),
    ("openspiel-face", our_game(chance_outcomes=loaded), "deals J with probability 0.5,"),
    ("openspiel-face", our_game(information_state_string=always("0")), "state at both: True"),
    ("openspiel-face", our_game(set_from=blank), "player_0: ours observes [0.0, 0.0"),
    ("openspiel-face", our_game(set_from=blank), "player_0: ours has the tensor [0.0, 0.0"),
    ("openspiel-face", our_game(string_from=both_cards), "text is the same for each card"),
    ("pettingzoo-api", env(observation_space=narrow_space), "api_test, run 1: ours fails with"),
    ("pettingzoo", env(observe=all_legal), "the deal with J against Q: ours allows action 2"),
    ("pettingzoo-observations", env(_turn=info_allows_all), "ours has info {'action_mask': [1, 1"),
    ("pettingzoo-observations", env(step=lenient), "FOLD is refused does not hold"),
    ("pettingzoo-observations", env(step=changed_by_an_error), "FOLD is refused does not hold"),
    ("pettingzoo-observations", env(state=lambda self: np.zeros(13)), "ours has state [0.0"),
    ("pettingzoo-observations", env(observe=all_legal), "player_1: ours observes {'observation'"),
    ("pettingzoo-observations", env(reset=dealt_by(always(DEALS[0]))), "ours deals 1 pairs of"),
    (
        "pettingzoo-observations",
        env(reset=dealt_by(lambda seed: DEALS[max(0, seed % 12 - 6)])),
        "a deal comes up about 100 times, not 350",
    ),
    ("shimmy", {"make_env": pays_twice}, "Shimmy pays"),
    ("engine.js", other_vectors(), "has returns [2, -2], the core has returns [3, -3"),
    ("tables", rules("player", lambda player: 1 - player), "ours has 1 to act"),
    ("tables", rules("returns", lambda returns: 2 * returns), "ours pays [-2.0, 2.0]"),
    ("tables", rules("child", abs), "ours allows [True, True, True]"),
    ("tables", game(), "ours shows [0.0, 0.0, 1.0"),
    ("tables", game(legal=lambda legal: legal | True), "ours allows [True, True, True]"),
    ("selfplay", environment("reset", lambda seen: 2 * seen), "ours shows [0.0, 0.0, 2.0, 2.0"),
    ("selfplay", environment("action_masks", lambda masks: ~masks), "ours allows ["),
    ("selfplay", step(0, lambda seen: seen + (seen == 0)), "ours shows [1.0, 1.0"),
    ("selfplay", step(1, lambda rewards: 2 * rewards), "ours pays 2, the plain one"),
    ("selfplay", step(2, lambda ended: ~ended), "ours is over: True"),
    ("selfplay", last_step("seats", lambda seats: 1 - seats), "ours lets 1 act"),
    ("selfplay", last_step("returns", lambda returns: 2 * returns), "ours pays all [2.0, -2.0]"),
]  # fmt: skip


@pytest.mark.parametrize(("name", "implementation", "text"), PLANTED)
def test_a_planted_error_is_described(name, implementation, text):
    if name == "engine.js" and not shutil.which("node"):
        pytest.skip("needs node")
    assert any(text in case for case in failures(name, implementation))


def test_the_upstream_fault_of_shimmy_is_watched():
    watch = KUHN_CHECKS["shimmy-upstream"]
    assert run(watch, QUICK).note.startswith("p with J against Q: the hand is truncated")
    result = run(watch, QUICK, make_env=corrected_shimmy)
    fixed = "fixed upstream: kuhn_bridge.shimmy can be removed"
    assert (result.status, result.note) == ("known", fixed)


def test_a_state_that_raises_is_a_mismatch():
    def broken(deal, letters):
        raise ZeroDivisionError("oops")

    cases = failures("core", {"core": Implementation(broken)})
    assert cases[0].startswith("the deal with J against Q: ZeroDivisionError: oops, OpenSpiel")


def test_all_states_are_compared():
    assert run(KUHN_CHECKS["phases"], QUICK).compared == 54
