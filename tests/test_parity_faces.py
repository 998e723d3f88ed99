"""The checks of the faces fail on planted errors."""

import shutil
from contextlib import suppress
from dataclasses import replace
from types import SimpleNamespace

import gymnasium
import numpy as np
import pytest
import shimmy

from algorithms.exact.simulator import rules_of
from algorithms.games import kuhn
from algorithms.learning.environments import SelfPlayVecEnv
from kuhn_bridge import BridgeError
from kuhn_bridge.kuhn_v0 import KuhnEnv
from kuhn_bridge.openspiel import KuhnBridgeGame, KuhnBridgeObserver, KuhnBridgeState
from kuhn_bridge.rules import DEALS
from kuhn_bridge.shimmy import WholeHands
from kuhn_bridge.web import check as web_check
from parity.registry import CHECKS, run
from tests.games import altered
from tests.planting import QUICK, failures


def face(*, observer=KuhnBridgeObserver, **methods):
    """Our OpenSpiel game with another observer, or other methods of its states."""
    state = type("OtherState", (KuhnBridgeState,), methods)

    class Other(KuhnBridgeGame):
        def new_initial_state(self):
            return state(self)

        def make_py_observer(self, iig_obs_type=None, params=None):
            return observer(iig_obs_type, params)

    return {"pyspiel": SimpleNamespace(load_game=lambda name: Other())}


class Blank(KuhnBridgeObserver):
    """Its tensors are 0."""

    def set_from(self, state, player):
        self.tensor[:] = 0


class Peeking(KuhnBridgeObserver):
    """Its text contains both cards."""

    def string_from(self, state, player):
        return str(state)


def loaded(self):
    first, *others = KuhnBridgeState.chance_outcomes(self)
    share = 1 / (len(others) + 2)
    return [(first[0], 2 * share), *((card, share) for card, _ in others)]


def env(**methods):
    """Our PettingZoo environment with other methods."""
    return {"kuhn_v0": SimpleNamespace(env=type("OtherEnv", (KuhnEnv,), methods))}


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


def dealing(deal_of):
    def reset(self, seed=None, options=None):
        KuhnEnv.reset(self, seed=seed, options=options or {"cards": deal_of(seed)})

    return reset


def narrow_space(self, agent):
    box = gymnasium.spaces.Box(0, 0.5, (10,), np.float32)
    return gymnasium.spaces.Dict(
        {**KuhnEnv.observation_space(self, agent).spaces, "observation": box}
    )


class PaysTwice(WholeHands):
    """Rewards are not cleared after each step."""

    def _clear_rewards(self):
        pass


def other_vectors():
    text = web_check.to_json().replace('"returns": [2, -2]', '"returns": [3, -3]')
    return web_check.report(text)


def replaced(name, change):
    """Change one field of a named tuple."""
    return lambda fields: fields._replace(**{name: change(getattr(fields, name))})


def rules(name, change):
    """The simulator's arrays with one of them changed."""
    return {"rules_of": lambda *args: replaced(name, change)(rules_of(*args))}


def game(**changes):
    """Kuhn with other arrays in its tree, and its observations reversed."""
    right = kuhn()
    arrays = {name: change(getattr(right.tree, name)) for name, change in changes.items()}
    tree = replace(right.tree, **arrays)
    wrong = altered(right, tree=tree, _observations=lambda self: right.observations[::-1])
    return {"kuhn": lambda: wrong}


def environment(name, change):
    """The vectorised environment with another result of a method; the plain one keeps its own."""
    right = getattr(SelfPlayVecEnv, name)
    methods = {name: lambda self: change(right(self))}
    return {"SelfPlayVecEnv": type("OtherEnv", (SelfPlayVecEnv,), methods)}


def step(part, change):
    """Another part of what `step_wait` returns: observations, rewards, whether ended, infos."""
    return environment(
        "step_wait", lambda parts: (*parts[:part], change(parts[part]), *parts[part + 1 :])
    )


def last_step(name, change):
    """Another part of what `last_step` returns."""
    return environment("last_step", replaced(name, change))


PLANTED = [
    ("openspiel-face", face(chance_outcomes=loaded), "deals J with probability 0.5, OpenSpiel"),
    (
        "openspiel-face",
        face(information_state_string=lambda self, player: "0"),
        "ours has the same information state at both: True",
    ),
    ("openspiel-face", face(observer=Blank), "player_0: ours observes [0.0, 0.0"),
    ("openspiel-face", face(observer=Blank), "player_0: ours has the tensor [0.0, 0.0"),
    ("openspiel-face", face(observer=Peeking), "its text is the same for each card of the other"),
    ("pettingzoo-api", env(observation_space=narrow_space), "api_test, run 1: ours fails with"),
    ("pettingzoo", env(observe=all_legal), "the deal with J against Q: ours allows action 2"),
    ("pettingzoo-observations", env(_turn=info_allows_all), "ours has info {'action_mask': [1, 1"),
    ("pettingzoo-observations", env(step=lenient), "FOLD is refused does not hold"),
    ("pettingzoo-observations", env(step=changed_by_an_error), "FOLD is refused does not hold"),
    ("pettingzoo-observations", env(state=lambda self: np.zeros(13)), "ours has state [0.0"),
    ("pettingzoo-observations", env(observe=all_legal), "player_1: ours observes {'observation'"),
    (
        "pettingzoo-observations",
        env(reset=dealing(lambda seed: DEALS[0])),
        "600 seeds: ours deals 1 pairs of cards",
    ),
    (
        "pettingzoo-observations",
        env(reset=dealing(lambda seed: DEALS[max(0, seed % 12 - 6)])),
        "a deal comes up about 100 times, not 350",
    ),
    ("shimmy", {"shimmed": lambda: PaysTwice(game_name="kuhn_poker")}, "Shimmy pays"),
    ("engine.js", {"report": other_vectors}, "has returns [2, -2], the core has returns [3, -3"),
    ("tables", rules("player", lambda player: 1 - player), "ours has 1 to act"),
    ("tables", rules("returns", lambda returns: 2 * returns), "ours pays [-2.0, 2.0]"),
    ("tables", rules("child", abs), "ours allows [True, True, True]"),
    ("tables", game(), "ours shows [0.0, 0.0, 1.0"),
    ("tables", game(legal=lambda legal: legal | True), "ours allows [True, True, True]"),
    ("selfplay", environment("reset", lambda seen: 2 * seen), "ours shows [2.0"),
    ("selfplay", environment("action_masks", lambda masks: ~masks), "ours allows ["),
    ("selfplay", step(0, lambda seen: seen + (seen == 0)), "ours shows [1.0, 1.0"),
    ("selfplay", step(1, lambda rewards: 2 * rewards), "ours pays 2, the plain one"),
    ("selfplay", step(2, lambda ended: ~ended), "ours is over: True"),
    ("selfplay", last_step("seats", lambda seats: 1 - seats), "ours lets 1 act"),
    ("selfplay", last_step("returns", lambda returns: 2 * returns), "ours pays all [2.0, -2.0]"),
]  # fmt: skip


@pytest.mark.parametrize(("row", "subject", "text"), PLANTED)
def test_a_planted_error_is_described(row, subject, text):
    if row == "engine.js" and not shutil.which("node"):
        pytest.skip("needs node")
    assert any(text in case for case in failures(row, subject))


def test_the_upstream_fault_of_shimmy_is_watched(monkeypatch):
    watch = CHECKS["shimmy-upstream"]
    assert run(watch, QUICK).note.startswith("p with J against Q: the hand is truncated")
    monkeypatch.setattr(shimmy, "OpenSpielCompatibilityV0", WholeHands)
    result = run(watch, QUICK)
    fixed = "fixed upstream: kuhn_bridge.shimmy can be removed"
    assert (result.status, result.note) == ("known", fixed)
